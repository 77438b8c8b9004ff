// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Identify photos with the exported model, without sending anything.

import './text.js';
import './files.js';
import { answer } from './answer.js';
import { describeModel, listClasses } from './classes.js';
import { $, report } from './dom.js';
import { showList } from './list.js';
import { isStarted, model, readFacts, run, startModel } from './model.js';
import { keepOffline } from './offline.js';
import { openPhoto, pixelsOf, reduce } from './photo.js';
import { addPhoto, readPhotos, saveRow } from './store.js';

async function load() {
  await readFacts();
  document.title = $('name').textContent = model.facts.name;
  listClasses();
  await startModel();
  $('facts').textContent = describeModel();
  $('camera').disabled = $('files').disabled = false;
}

const createId = () =>
  `${Date.now()} ${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`;
const keep = (change) => change.catch(({ message }) => report(message));

/* Identify a photo of a new plant, or of one in the list. */
async function identify(file, position, plant) {
  const photo = await openPhoto(file);
  const image = pixelsOf(photo), jpeg = await reduce(photo);
  photo.bitmap.close();
  const outputs = await run(image), id = plant ?? createId();
  await keep(addPhoto({ id, jpeg, name: file.name, ...outputs }));
  const photos = await readPhotos(id);
  const taken = plant ? {} : { time: new Date().toISOString(),
    model: model.facts.digest };
  await keep(saveRow(id, { ...taken, sure_answer: undefined,
    sure_set: undefined, ...answer(photos), photos: photos.length,
    image: photos.map(({ name }) => name).join(' | ') }));
  await showList(add);
  position?.then((place) => keep(saveRow(id, place))); // later
}

async function identifyAll(files, taken, plant) {
  $('errors').replaceChildren();
  const position = taken && $('position').checked ? locate() : undefined;
  const count = files.length;
  let done = 0;
  for (const [i, file] of files.entries()) {
    $('status').textContent = say('app.identifying', { number: i + 1, count });
    await identify(file, position, plant).then(() => done++, (error) =>
      report(`${file.name}: ${error.message}`));
  }
  $('status').textContent = say('app.identified', { number: done, count });
  $('results').firstElementChild?.scrollIntoView({ block: 'nearest' });
}

function locate() {
  const settings = { enableHighAccuracy: true, maximumAge: 6e4, timeout: 2e4 };
  return new Promise((resolve) => navigator.geolocation.getCurrentPosition(
    ({ coords: { latitude, longitude, accuracy } }) =>
      resolve({ latitude, longitude, position_error_m: accuracy }),
    () => resolve(report(say('app.no_position'))), settings));
}

function add(files, taken, plant) {
  navigator.storage?.persist?.().then((isKept) => {
    $('kept').textContent = isKept ? '' : say('app.may_delete');
  });
  queue = queue.then(() => isStarted() && identifyAll(files, taken, plant));
}

translate(document);
let queue = load().catch((error) => {
  $('facts').textContent = '';
  report(error.message);
}).then(() => showList(add));
// an app that does not start may have a stored version, which is updated
queue.then(() => isStarted() || navigator.serviceWorker?.controller).then(
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
