// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Keep rows and photos of the plants in the browser (IndexedDB). A change is
// one transaction, so tabs that are open together lose nothing. What the
// browser does not store is kept until the page is closed.

const NAME = `identified ${new URL('.', location)}`; // for hosts of more apps
const unsaved = { rows: new Map(), photos: [] };
const channel = globalThis.BroadcastChannel && new BroadcastChannel(NAME);
let problem; // why nothing is stored

const wait = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function open() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore('rows', { keyPath: 'id' });
    request.result.createObjectStore('photos', { autoIncrement: true })
      .createIndex('id', 'id');
  };
  return wait(request);
}

const database = (async () => open())().catch(() => {
  problem = 'app.list_blocked';
});

/* Run a function with both stores in one transaction; return its result. */
async function change(action) {
  const opened = await database;
  if (!opened) fail(problem);
  const transaction = opened.transaction(['rows', 'photos'], 'readwrite');
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  done.catch(() => {}); // reported below
  let result;
  try {
    result = await action(transaction.objectStore('rows'),
      transaction.objectStore('photos'));
    await done;
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    fail(error.name === 'QuotaExceededError' ? 'app.list_full' :
      'app.list_blocked');
  }
  channel?.postMessage('changed');
  return result;
}

async function read(store, action) { // empty if the browser blocks it
  const opened = await database;
  if (!opened) return [];
  return wait(action(opened.transaction(store).objectStore(store)));
}

/* Return all rows, the oldest first. */
export async function readRows() {
  const stored = await read('rows', (rows) => rows.getAll());
  const rows = new Map(stored.map((row) => [row.id, row]));
  unsaved.rows.forEach((row, id) => rows.set(id, row));
  return [...rows.values()].sort((a, b) => a.time < b.time ? -1 : 1);
}

/* Return the photos of a plant, in their order. */
export async function readPhotos(id) {
  const stored = await read('photos', (photos) => photos.index('id').getAll(
    id));
  return [...stored, ...unsaved.photos.filter((photo) => photo.id === id)];
}

/* Store a photo of a plant, or throw an error with advice. */
export async function addPhoto(photo) {
  await change((_, photos) => wait(photos.add(photo))).catch((error) => {
    unsaved.photos.push(photo);
    throw error;
  });
}

/* Store values of a plant, which may be new, or throw an error with advice. */
export async function saveRow(id, values) {
  const version = `${Date.now()} ${Math.random()}`;
  const merge = (row) => ({ ...row, ...values, id, version });
  await change(async (rows) => {
    const row = unsaved.rows.get(id) ?? await wait(rows.get(id));
    await wait(rows.put(merge(row)));
  }).then(() => unsaved.rows.delete(id), async (error) => {
    const row = (await readRows()).find((other) => other.id === id);
    unsaved.rows.set(id, merge(row));
    throw error;
  });
  return version;
}

/* Delete all rows and photos. */
export async function clear() {
  unsaved.rows.clear();
  unsaved.photos = [];
  await change((rows, photos) => Promise.all([wait(rows.clear()),
    wait(photos.clear())]));
}

/* Call a function if another tab has changed something. */
export function onChange(show) {
  channel?.addEventListener('message', show);
  addEventListener('beforeunload', (event) => {
    if (unsaved.rows.size + unsaved.photos.length) event.preventDefault();
  });
}
