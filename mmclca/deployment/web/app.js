// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Identify photos with the exported model, without sending anything. Scores
// and columns are named as in tools/deployment/infer_onnx.py.

const MAX = 60; // megapixels
const TOP = [1, 2, 3, 4, 5]; // classes per photo
const DAMAGED = 'A file of the app is missing or damaged: reload the page ' +
  'while online, or export the app again.';
const SHOWN = 50; // photos on the screen; the CSV file has all
const ROWS = 256; // read at a time: browsers limit the area of a canvas
const SCORES = ['max_softmax', 'energy', 'nearest'];
const COLUMNS = ['image', 'time', 'pred_class', 'pred_score', 'known',
  'known_score', ...TOP.flatMap((i) => [`label_${i}`, `name_${i}`,
    `score_${i}`]), 'latitude', 'longitude', 'position_error_m', 'model'];
const WITH_SIMD = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96,
  0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);
const KEY = `identified ${new URL('.', location)}`; // hosts may have more apps
const $ = (id) => document.getElementById(id);
let facts, ort, session, unsaved;

function make(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

const unknown = (row, text) => row.known === 'no' ? [make('em', text)] : [];
const report = (text) => $('errors').append(make('li', text));
const fail = (text) => { throw Error(text); };
const percent = (score) => `${(100 * score).toFixed(1)}%`;
const rounded = (score) => Math.round(score * 1e6) / 1e6;

async function get(name, integrity) { // fails with another digest
  const options = { integrity, cache: 'no-cache' };
  const found = await fetch(name, options).catch(() => ({ ok: false }));
  return found.ok ? found : fail(`${name}: ${DAMAGED}`);
}

async function load() {
  facts = await (await get('model.json')).json().catch(() => fail(DAMAGED));
  document.title = $('name').textContent = facts.name;
  globalThis.WebAssembly?.validate(WITH_SIMD) || fail('This browser has no ' +
    'WebAssembly SIMD: update it, or use another one.');
  const model = await (await get(facts.file, facts.integrity)).arrayBuffer();
  session = await start(new Uint8Array(model)).catch(() => fail(DAMAGED));
  $('facts').textContent = facts.about;
  $('camera').disabled = $('files').disabled = false;
}

async function start(model) {
  ort = await import('./runtime/ort.wasm.bundle.min.mjs');
  // the proxy is a worker, which keeps the page responsive
  Object.assign(ort.env.wasm, { numThreads: 1, proxy: true });
  return ort.InferenceSession.create(model, { executionProviders: ['wasm'] });
}

async function megapixels(file) { // without decoding
  const image = new Image();
  image.src = URL.createObjectURL(file);
  await new Promise((onload, onerror) => Object.assign(image, { onload,
    onerror })).finally(() => URL.revokeObjectURL(image.src));
  return image.naturalWidth * image.naturalHeight / 1e6;
}

async function decode(file) {
  const unreadable = () =>
    fail('not a photo that this browser can read; use JPEG or PNG.');
  const size = await megapixels(file).catch(unreadable);
  if (size > MAX) fail(`${Math.ceil(size)} megapixels; the limit is ${MAX}.`);
  // EXIF orientation is followed without an option
  const options = { premultiplyAlpha: 'none', colorSpaceConversion: 'none' };
  return createImageBitmap(file, options).catch(unreadable);
}

function contextOf(width, height) {
  const canvas = Object.assign(make('canvas'), { width, height });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.fillStyle = '#fff'; // behind transparent pixels
  return context;
}

function pixelsOf(bitmap) {
  const { width, height } = bitmap, context = contextOf(width, ROWS);
  const pixels = new Uint8Array(3 * width * height);
  for (let top = 0, to = 0; top < height; top += ROWS) {
    context.fillRect(0, 0, width, ROWS);
    context.drawImage(bitmap, 0, -top);
    const { data } = context.getImageData(0, 0, width,
      Math.min(ROWS, height - top));
    for (let from = 0; from < data.length; from++) {
      if (from % 4 < 3) pixels[to++] = data[from]; // RGBA to RGB
    }
  }
  return new ort.Tensor('uint8', pixels, [height, width, 3]);
}

async function run(image) {
  const feeds = { [session.inputNames[0]]: image };
  const { logits, nearest } = await session.run(feeds).catch(() =>
    fail('the model failed: close other apps, or choose a smaller photo.'));
  logits.data.every(Number.isFinite) || fail(DAMAGED);
  return answer(logits.data, nearest?.data[0]);
}

function answer(logits, nearest) {
  const most = logits.reduce((a, b) => Math.max(a, b));
  const sum = logits.reduce((total, x) => total + Math.exp(x - most), 0);
  const energy = most + Math.log(sum);
  const scores = Array.from(logits, (x) => Math.exp(x - energy));
  const best = [...scores.keys()].sort((a, b) => scores[b] - scores[a]);
  const row = flag([scores[best[0]], energy, nearest]);
  for (const i of TOP.slice(0, best.length)) {
    row[`label_${i}`] = best[i - 1];
    row[`name_${i}`] = facts.classes[best[i - 1]];
    row[`score_${i}`] = rounded(scores[best[i - 1]]);
  }
  return { pred_class: row.name_1, pred_score: row.score_1, ...row };
}

function flag(scores) {
  if (!facts.threshold) return {};
  const score = scores[SCORES.indexOf(facts.threshold.score)];
  const known = score >= facts.threshold.threshold ? 'yes' : 'no';
  return { known, known_score: rounded(score) };
}

async function identify(file, position) {
  const bitmap = await decode(file);
  const photo = thumbnail(bitmap), image = pixelsOf(bitmap);
  bitmap.close();
  const row = { image: file.name, time: new Date().toISOString(),
    ...await run(image), model: facts.digest };
  $('results').prepend(card(photo, row));
  $('results').children[SHOWN]?.remove();
  write([...read(), row]);
  position?.then((place) => // found later
    write(read().map((x) => x.time === row.time ? { ...x, ...place } : x)));
}

async function identifyAll(files, taken) {
  $('errors').replaceChildren();
  const position = taken && $('position').checked ? locate() : undefined;
  let done = 0;
  for (const [i, file] of files.entries()) {
    $('status').textContent = `Identifying ${i + 1} of ${files.length}`;
    await identify(file, position).then(() => done++, (error) =>
      report(`${file.name}: ${error.message}`));
  }
  $('status').textContent = `Identified ${done} of ${files.length}`;
}

function locate() {
  const settings = { enableHighAccuracy: true, maximumAge: 6e4, timeout: 2e4 };
  return new Promise((resolve) => navigator.geolocation.getCurrentPosition(
    ({ coords: { latitude, longitude, accuracy } }) =>
      resolve({ latitude, longitude, position_error_m: accuracy }),
    () => resolve(report('The position is not available: allow it in the ' +
      'settings of this page and device.')), settings));
}

function thumbnail(bitmap) {
  const context = contextOf(192, 192);
  const scale = 192 / Math.min(bitmap.width, bitmap.height);
  const [width, height] = [bitmap.width * scale, bitmap.height * scale];
  context.fillRect(0, 0, 192, 192);
  context.drawImage(bitmap, 96 - width / 2, 96 - height / 2, width, height);
  return context.canvas;
}

function card(photo, row) {
  const names = TOP.filter((i) => `name_${i}` in row).map((i) => {
    const meter = Object.assign(make('meter'), { value: row[`score_${i}`],
      ariaHidden: 'true' });
    const name = row[`name_${i}`].replaceAll('_', ' ');
    return make('li', make('span', name), percent(meter.value), meter);
  });
  return make('article', photo, make('div', make('h3', row.image),
    ...unknown(row, 'Unknown? This photo may show none of the known classes ' +
      `(score ${row.known_score?.toFixed(3)}).`), make('ol', ...names)));
}

function read() {
  try {
    return [...unsaved ?? JSON.parse(localStorage.getItem(KEY)) ?? []];
  } catch { // blocked or damaged
    return [];
  }
}

function write(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
    unsaved = undefined;
  } catch {
    unsaved = list;
    report('The storage is full: export the list now, then clear it.');
  }
  showList();
}

function showList() {
  const list = read();
  $('count').textContent = `${list.length} in the list, newest first`;
  $('list').start = list.length;
  $('list').replaceChildren(...list.slice(-SHOWN).reverse().map((row) =>
    make('li', `${row.image}: ${row.pred_class} ${percent(row.pred_score)} `,
      ...unknown(row, 'unknown? '),
      make('time', new Date(row.time).toLocaleString()))));
  $('export').disabled = $('clear').disabled = !list.length;
}

function cell(value = '') { // spreadsheets would run a text as a formula
  const formula = typeof value === 'string' && /^'*[=+\-@\t\r]/.test(value);
  const text = formula ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function exportTable() {
  const rows = read().map((row) => COLUMNS.map((name) => cell(row[name])));
  const text = [COLUMNS, ...rows].map((row) => `${row.join()}\n`).join('');
  const file = new Blob(['\ufeff', text], { type: 'text/csv' }); // for Excel
  const link = make('a'), today = new Date().toISOString().slice(0, 10);
  link.href = URL.createObjectURL(file);
  link.download = `identified-${today}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 6e4);
}

async function keepOffline() {
  if (!navigator.serviceWorker) fail('open this page over https');
  const registration = await navigator.serviceWorker.register('sw.js');
  const show = () => {
    const { active, installing, waiting } = registration;
    installing?.addEventListener('statechange', show);
    $('update').hidden = !(active && waiting);
    $('offline').textContent = active ? 'This app works offline.' :
      installing ?? waiting ? 'Saving the app for offline use.' :
      'This app works only while online: a file or free storage is missing.';
  };
  registration.addEventListener('updatefound', show);
  show();
  $('reload').onclick = () => {
    registration.waiting.onstatechange = () => location.reload();
    registration.waiting.postMessage('replace the old version');
  };
}

let queue = load().catch((error) => {
  $('facts').textContent = '';
  report(error.message);
});

function add(files, taken) {
  navigator.storage?.persist?.(); // else browsers may remove the app
  queue = queue.then(() => session && identifyAll(files, taken));
}
for (const id of ['camera', 'files']) {
  $(id).onchange = ({ target }) => {
    add([...target.files], id === 'camera');
    target.value = ''; // the same name may be chosen again
  };
}
document.ondragover = (event) => event.preventDefault();
document.ondrop = (event) => {
  event.preventDefault();
  add([...event.dataTransfer.files], false);
};
$('position').onchange = ({ target }) => target.checked && locate();
$('export').onclick = exportTable;
$('clear').onclick = () =>
  confirm(`Delete all ${read().length} results? This cannot be undone.`) &&
    $('results').replaceChildren(write([]) ?? '');
keepOffline().catch(({ message }) => {
  $('offline').textContent = `This app works only while online: ${message}.`;
});
showList();
