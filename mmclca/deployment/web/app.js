// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Identify photos with the exported model, without sending anything. Scores
// are named as in tools/deployment/infer_onnx.py.

import './files.js';
import { addRow, clearList, extendRow, onListChange, readList, tableOf, TOP }
  from './list.js';
import { openPhoto, pixelsOf, thumbnail } from './photo.js';
import { combineLogits, energyOf, meanScores } from './plant.js';
import { answerOf, calibrate, followTicks, LEVEL } from './sets.js';

const RUNTIME = 'runtime/ort.wasm.bundle.min.js';
const SHOWN = 50; // photos on the screen; the CSV file has all
const SCORES = ['max_softmax', 'energy', 'nearest'];
const WITH_SIMD = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96,
  0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);
const $ = (id) => document.getElementById(id);
let facts, kept, ort, rule, session;

function make(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

const report = (text) => $('errors').append(make('li', text));
const fail = (text) => { throw Error(text); };
const percent = (score) => `${(100 * score).toFixed(1)}%`;
const rounded = (score) => Math.round(score * 1e6) / 1e6;
const worded = (name) => name.replaceAll('_', ' ');

async function load() {
  facts = await (await fetchExported('model.json')).json().catch(() =>
    fail('model.json: the host sends other content than exported.'));
  document.title = $('name').textContent = facts.name;
  listClasses(facts.classes);
  globalThis.WebAssembly?.validate(WITH_SIMD) || fail('This browser has no ' +
    'WebAssembly SIMD: update it, or use another one.');
  const file = await fetchExported(facts.file, facts.integrity);
  session = await start(new Uint8Array(await file.arrayBuffer()));
  $('facts').textContent = facts.about;
  $('camera').disabled = $('files').disabled = false;
}

/* List the classes with boxes to tick. */
function listClasses(names) {
  const boxes = names.map(() =>
    Object.assign(make('input'), { type: 'checkbox' }));
  $('classes').append(...names.map((name, i) =>
    make('li', make('label', boxes[i], ` ${worded(name)}`))));
  const change = followTicks(names, boxes, (labels, ticked) => {
    [kept, rule] = [labels, calibrate(facts.sure, labels)];
    const some = ticked === kept.length && ticked < names.length;
    $('number').textContent = some ? `${ticked} of ${names.length} classes ` +
      'can occur here' : `${names.length} classes`;
    $('guarantee').textContent = rule.limit ? `Names after “${LEVEL}%” have ` +
      `the right one for ${LEVEL}% of photos like the training photos.` :
      rule.problem ? `No answers with ${LEVEL}% guarantee: ${rule.problem}` :
        '';
  });
  $('classes').onchange = () => change();
  $('all').onclick = () => change((box) => { box.checked = true; });
  $('none').onclick = () => change((box) => { box.checked = false; });
  $('names').hidden = false;
}

async function start(model) {
  ort = await import(`./${RUNTIME}`).catch(async () => {
    await checkScript(RUNTIME);
    fail('This browser cannot run the app: update it, or use another one.');
  });
  // the proxy is a worker, which keeps the page responsive
  Object.assign(ort.env.wasm, { numThreads: 1, proxy: true });
  const options = { executionProviders: ['wasm'] };
  return ort.InferenceSession.create(model, options).catch(async () => {
    for (const [name, integrity] of Object.entries(facts.runtime)) {
      await fetchExported(name, integrity);
    }
    fail('The model does not start: close other apps, or update the browser.');
  });
}

async function run({ pixels, width, height }) {
  const image = new ort.Tensor('uint8', pixels, [height, width, 3]);
  const feeds = { [session.inputNames[0]]: image };
  const { logits, nearest } = await session.run(feeds).catch(() =>
    fail('the model failed: close other apps, or choose a smaller photo.'));
  logits.data.every(Number.isFinite) ||
    fail('the model gives no numbers: update the browser.');
  return { logits: logits.data, nearest: nearest?.data[0] };
}

/* Return the answer for one or several photos of a plant. */
function answer(photos) {
  const logits = combineLogits(photos, facts.dependence);
  const energy = energyOf(logits);
  const all = logits.map((x) => Math.max(Math.exp(x - energy), 1e-30));
  const row = flag(meanScores(photos));
  const total = kept.reduce((before, i) => before + all[i], 0);
  const scores = all.map((x) => x / total); // of the classes that can occur
  const best = [...kept].sort((a, b) => scores[b] - scores[a]);
  if (rule.limit && photos.length === 1) { // sets are of single photos
    const within = best.filter((i) =>
      scores[i] / scores[best[0]] >= rule.limit);
    Object.assign(row, answerOf(within.map((i) => facts.classes[i]),
      facts.sure.coarse_classes));
  }
  for (const i of TOP.slice(0, best.length)) {
    row[`label_${i}`] = best[i - 1];
    row[`name_${i}`] = facts.classes[best[i - 1]];
    row[`score_${i}`] = rounded(scores[best[i - 1]]);
  }
  const isUnknown = row.known === 'no'; // sorted, these come first
  return { result: isUnknown ? 'unknown' : row.name_1,
    confidence: isUnknown ? 0 : row.score_1,
    pred_class: row.name_1, pred_score: row.score_1, ...row };
}

function flag(scores) {
  if (!facts.threshold) return {};
  const score = scores[SCORES.indexOf(facts.threshold.score)];
  const known = score >= facts.threshold.threshold ? 'yes' : 'no';
  return { known, known_score: rounded(score) };
}

async function identify(file, position, plant) {
  const photo = await openPhoto(file);
  const picture = thumbnail(photo), image = pixelsOf(photo);
  photo.bitmap.close();
  const result = await run(image);
  if (plant) return extendPlant(plant, file.name, picture, result);
  const row = { image: file.name, photos: 1, time: new Date().toISOString(),
    ...answer([result]), model: facts.digest };
  const added = { photos: [result], row };
  added.card = card(picture, added);
  $('results').prepend(added.card);
  $('results').children[SHOWN]?.remove();
  change(() => addRow(row));
  position?.then((place) => change(() => extendRow(row, place))); // later
}

/* Add a photo to a plant in the list, and update its scores. */
function extendPlant(plant, name, picture, result) {
  const photos = [...plant.photos, result], { row } = plant;
  const update = { sure_answer: undefined, sure_set: undefined,
    ...answer(photos), image: `${row.image} | ${name}`,
    photos: photos.length };
  change(() => extendRow(row, update));
  plant.photos = photos;
  const shown = card(picture, plant);
  plant.card.replaceWith(shown);
  plant.card = shown;
}

function change(list) { // and show what cannot be stored
  try {
    list();
  } catch ({ message }) {
    report(message);
  }
  showList();
}

async function identifyAll(files, taken, plant) {
  $('errors').replaceChildren();
  const position = taken && $('position').checked ? locate() : undefined;
  let done = 0;
  for (const [i, file] of files.entries()) {
    $('status').textContent = `Identifying ${i + 1} of ${files.length}`;
    await identify(file, position, plant).then(() => done++, (error) =>
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

/* Return a button to add photos to a plant. */
function plantButton(plant) {
  const input = Object.assign(make('input'), { type: 'file',
    accept: 'image/*', multiple: true });
  input.onchange = () => add([...input.files], false, plant);
  const label = make('label', 'Add another photo of this plant', input);
  label.className = 'button';
  return label;
}

function card(picture, plant) {
  const { row } = plant;
  const isUnknown = row.known === 'no';
  const names = TOP.filter((i) => `name_${i}` in row).map((i) => {
    const meter = Object.assign(make('meter'), { value: row[`score_${i}`],
      ariaHidden: 'true' });
    const name = `${isUnknown && i === 1 ? 'nearest: ' : ''}` +
      worded(row[`name_${i}`]);
    return make('li', make('span', name), percent(meter.value), meter);
  });
  const title = make('h3', isUnknown ? describeUnknown(row) :
    worded(row.pred_class));
  const sure = row.sure_answer ?
    [make('p', `${LEVEL}%: ${worded(row.sure_answer)}`)] : [];
  const article = make('article', picture, make('div', title, ...sure,
    make('ol', ...names), make('small', row.image), plantButton(plant)));
  article.classList.toggle('unknown', isUnknown);
  return article;
}

function describeUnknown({ known_score: score }) {
  const { score: kind, threshold } = facts.threshold;
  const name = kind === 'nearest' ? 'similarity' : 'score';
  return `Unknown: ${name} ${score.toFixed(3)}, below the threshold ` +
    threshold.toFixed(3);
}

function showList() {
  const list = readList();
  $('count').textContent = `${list.length} in the list, newest first`;
  $('list').start = list.length;
  $('list').replaceChildren(...list.slice(-SHOWN).reverse().map((row) => {
    const name = `${worded(row.pred_class)} ${percent(row.pred_score)}`;
    const found = row.known === 'no' ? [make('em', 'unknown'),
      `, nearest: ${name} `] : [`${name} `];
    return make('li', `${row.image}: `, ...found,
      make('time', new Date(row.time).toLocaleString()));
  }));
  $('export').disabled = $('clear').disabled = !list.length;
}

function exportTable() {
  const link = make('a'), today = new Date().toISOString().slice(0, 10);
  const name = facts?.name.replace(/[\\/:*?"<>|]/g, '_') ?? 'photos';
  link.href = URL.createObjectURL(tableOf(readList()));
  link.download = `${name}-identified-${today}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 6e4);
}

/* Register the service worker, or say why this browser has none. */
async function register() {
  if (!isSecureContext) fail('open this page over https.');
  const workers = navigator.serviceWorker ?? fail('this browser stores no ' +
    'apps in private windows or inside other apps; open this page in a ' +
    'normal window of Chrome, Firefox or Safari.');
  const options = { updateViaCache: 'none' };
  return workers.register('sw.js', options).catch(async () => {
    await checkScript('sw.js');
    fail('this browser blocks the storage of this page; allow the page to ' +
      'store data (cookies).');
  });
}

/* Ask a service worker whether it opens this page without a network. */
function opensOffline(worker) {
  const { port1, port2 } = new MessageChannel();
  worker.postMessage(location.href, [port2]);
  return new Promise((resolve) => { port1.onmessage = resolve; }).then(
    ({ data }) => data.isStored || fail(data.message ?? 'files are missing.'));
}

async function keepOffline() {
  const say = (text) => { $('offline').textContent = text; };
  const sayWhyNot = ({ message }) =>
    say(`This app works only while online: ${message}`);
  const registration = await register().catch(sayWhyNot);
  if (!registration) return;
  let reason = 'it was not stored; reload this page.';
  const show = () => {
    const { active, installing, waiting } = registration;
    installing?.addEventListener('statechange', show);
    $('update').hidden = !(active && waiting);
    if (!session) return; // a new version may start
    if (active) {
      opensOffline(active).then(() => say('This app works offline.'),
        sayWhyNot);
    } else if (installing ?? waiting) {
      say('Saving the app for offline use.');
    } else {
      sayWhyNot({ message: reason });
    }
  };
  registration.addEventListener('updatefound', show);
  navigator.serviceWorker.onmessage = ({ data }) => {
    reason = data; // why the new version cannot be stored
    show();
  };
  $('reload').onclick = () => {
    registration.waiting.onstatechange = () => location.reload();
    registration.waiting.postMessage('replace the old version');
  };
  show();
}

function add(files, taken, plant) {
  navigator.storage?.persist?.(); // else browsers may remove the app
  queue = queue.then(() => session &&
    identifyAll(files, taken, plant));
}

let queue = load().catch((error) => {
  $('facts').textContent = '';
  report(error.message);
});
// an app that does not start may have a stored version, which is updated
queue.then(() => session || navigator.serviceWorker?.controller).then(
  (isOpen) => isOpen && keepOffline());
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
$('clear').onclick = () => {
  const text = `Delete all ${readList().length} results? ` +
    'This cannot be undone.';
  if (!confirm(text)) return;
  clearList();
  $('results').replaceChildren();
  showList();
};
onListChange(showList);
showList();
