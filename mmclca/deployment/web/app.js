// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Identify photos with the exported model, without sending anything.

import './text.js';
import './files.js';
import { answer } from './answer.js';
import { makeCard, makePlantButton } from './card.js';
import { describeModel, listClasses } from './classes.js';
import { $, make, percent, report, worded } from './dom.js';
import { addRow, clearList, extendRow, onListChange, readList, tableOf }
  from './list.js';
import { isStarted, model, readFacts, run, startModel } from './model.js';
import { keepOffline } from './offline.js';
import { openPhoto, pixelsOf, thumbnail } from './photo.js';

const SHOWN = 50; // photos on the screen; the CSV file has all

async function load() {
  await readFacts();
  document.title = $('name').textContent = model.facts.name;
  listClasses();
  await startModel();
  $('facts').textContent = describeModel();
  $('camera').disabled = $('files').disabled = false;
}

async function identify(file, position, plant) {
  const photo = await openPhoto(file);
  const picture = thumbnail(photo), image = pixelsOf(photo);
  photo.bitmap.close();
  const outputs = await run(image);
  if (plant) return extendPlant(plant, file.name, picture, outputs);
  const row = { image: file.name, photos: 1, time: new Date().toISOString(),
    ...answer([outputs]), model: model.facts.digest };
  const added = { photos: [outputs], row };
  added.card = showPlant(picture, added);
  $('results').prepend(added.card);
  $('results').children[SHOWN]?.remove();
  change(() => addRow(row));
  position?.then((place) => change(() => extendRow(row, place))); // later
}

const showPlant = (picture, plant) => makeCard(plant.row, picture,
  makePlantButton((files) => add(files, false, plant)));

/* Add a photo to a plant in the list, and update its scores. */
function extendPlant(plant, name, picture, outputs) {
  const photos = [...plant.photos, outputs], { row } = plant;
  const update = { sure_answer: undefined, sure_set: undefined,
    ...answer(photos), image: `${row.image} | ${name}`,
    photos: photos.length };
  change(() => extendRow(row, update));
  plant.photos = photos;
  const shown = showPlant(picture, plant);
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
  const count = files.length;
  let done = 0;
  for (const [i, file] of files.entries()) {
    $('status').textContent = say('app.identifying', { number: i + 1, count });
    await identify(file, position, plant).then(() => done++, (error) =>
      report(`${file.name}: ${error.message}`));
  }
  $('status').textContent = say('app.identified', { number: done, count });
}

function locate() {
  const settings = { enableHighAccuracy: true, maximumAge: 6e4, timeout: 2e4 };
  return new Promise((resolve) => navigator.geolocation.getCurrentPosition(
    ({ coords: { latitude, longitude, accuracy } }) =>
      resolve({ latitude, longitude, position_error_m: accuracy }),
    () => resolve(report(say('app.no_position'))), settings));
}

function showList() {
  const list = readList();
  $('count').textContent = say('app.count', { count: list.length });
  $('list').start = list.length;
  $('list').replaceChildren(...list.slice(-SHOWN).reverse().map((row) => {
    const name = `${worded(row.pred_class)} ${percent(row.pred_score)}`;
    const result = row.known === 'no' ? [make('em', {},
      say('app.trust.unknown')), `, ${say('app.nearest', { name })} `] :
      [`${name} `];
    return make('li', {}, `${row.image}: `, ...result,
      make('time', {}, new Date(row.time).toLocaleString()));
  }));
  $('export').disabled = $('clear').disabled = !list.length;
}

function exportTable() {
  const today = new Date().toISOString().slice(0, 10);
  const name = model.facts?.name.replace(/[\\/:*?"<>|]/g, '_') ?? 'photos';
  const link = make('a', { href: URL.createObjectURL(tableOf(readList())),
    download: `${name}-identified-${today}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 6e4);
}

function add(files, taken, plant) {
  navigator.storage?.persist?.(); // else browsers may remove the app
  queue = queue.then(() => isStarted() &&
    identifyAll(files, taken, plant));
}

translate(document);
let queue = load().catch((error) => {
  $('facts').textContent = '';
  report(error.message);
});
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
$('export').onclick = exportTable;
$('clear').onclick = () => {
  const count = readList().length;
  if (!confirm(say('app.clear_all', { count }))) return;
  clearList();
  $('results').replaceChildren();
  showList();
};
onListChange(showList);
showList();
