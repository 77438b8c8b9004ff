// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Keep the app on the device. The export writes the digests of its files here,
// so a new export replaces all of them or none.
importScripts('text.js', 'files.js');
const FILES = {};
const SCOPE = self.registration.scope;
const OWN = `${SCOPE} `; // other apps may share the host
const CACHE = OWN + '@VERSION@';

async function store() {
  const cache = await caches.open(CACHE);
  await Promise.all(Object.entries(FILES).map(async ([name, integrity]) => {
    const { body, headers } = await fetchExported(name, integrity);
    // browsers refuse redirected responses for a page, and a "Vary" of the
    // host would hide files, so the copy has neither
    const type = { 'Content-Type': headers.get('Content-Type') };
    await cache.put(name, new Response(body, { headers: type }));
  }));
}

async function install() {
  await store().catch(async (error) => {
    const options = { includeUncontrolled: true };
    for (const page of await self.clients.matchAll(options)) {
      page.postMessage(error.message);
    }
    throw error;
  });
}

async function removeOld() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith(OWN) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
}

async function find(address) {
  const cache = await caches.open(CACHE), url = new URL(address, SCOPE);
  const isPage = `${url.origin}${url.pathname}` === `${SCOPE}index.html`;
  return cache.match(isPage ? './' : url, { ignoreSearch: true });
}

async function answer(request) {
  return await find(request.url) ?? fetch(request).catch(async (error) => {
    // without a network, all addresses below the scope lead to the app
    if (request.mode !== 'navigate' || !await find('./')) throw error;
    return Response.redirect(SCOPE);
  });
}

async function opensOffline(address) {
  const names = [address.startsWith(SCOPE) ? './' : address,
    ...Object.keys(FILES)];
  const isStored = async () =>
    (await Promise.all(names.map(find))).every(Boolean);
  // browsers and users may remove stored files
  return await isStored() || (await store(), await isStored());
}

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(removeOld()));
self.addEventListener('fetch', (event) =>
  event.respondWith(answer(event.request)));
self.addEventListener('message', ({ data, ports }) =>
  data === 'replace the old version' ? self.skipWaiting() :
    opensOffline(data).then((isStored) => ports[0].postMessage({ isStored }),
      ({ message }) => ports[0].postMessage({ message })));
