// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Keep the app on the device. The export writes the digests of its files here,
// so a new export replaces all of them or none.
const FILES = {};
const OWN = `${self.registration.scope} `; // other apps may share the host
const CACHE = OWN + '@VERSION@';

async function store() {
  const requests = Object.entries(FILES).map(([name, integrity]) =>
    new Request(name, { integrity, cache: 'no-cache' }));
  await (await caches.open(CACHE)).addAll(requests);
}

async function removeOld() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith(OWN) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
}

async function find(request) {
  const cache = await caches.open(CACHE);
  return await cache.match(request, { ignoreSearch: true }) ?? fetch(request);
}

self.addEventListener('install', (event) => event.waitUntil(store()));
self.addEventListener('activate', (event) => event.waitUntil(removeOld()));
self.addEventListener('message', () => self.skipWaiting());
self.addEventListener('fetch', (event) =>
  event.respondWith(find(event.request)));
