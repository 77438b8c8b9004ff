// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Show the list of the identified plants, the newest first.

import { makeCard } from './card.js';
import { $, report } from './dom.js';
import { exportPhotos, exportTable } from './export.js';
import { describeAccuracy, labelOf } from './marks.js';
import { model } from './model.js';
import { clear, onChange, readRows, saveRow } from './store.js';

const STEP = 20; // cards on the screen, at first
const cards = new Map(); // by id: element, and version of its row
let addPhotos, rows = [], shown = STEP, queue = Promise.resolve();

const attempt = (action) => action.catch(({ message }) => report(message));

/* Show the list; add is called with photos for a plant. */
export function showList(add = addPhotos) {
  addPhotos = add;
  queue = queue.then(update);
  return queue;
}

async function update() {
  rows = await readRows();
  showSummary();
  if (!model.facts) return; // the app did not start
  const newest = rows.slice(-shown).reverse();
  for (const [i, row] of newest.entries()) {
    const card = await refresh(row), other = $('results').children[i];
    if (card !== other) $('results').insertBefore(card, other ?? null);
  }
  for (const card of [...$('results').children].slice(newest.length)) {
    card.remove();
  }
}

/* Return the card of a row; one in which a text is being typed is kept. */
async function refresh(row) {
  const old = cards.get(row.id), { activeElement } = document;
  const fields = [...old?.element.querySelectorAll('.marks input') ?? []];
  const isTyped = fields.some((field) => field === activeElement &&
    field.value !== field.defaultValue);
  if (old && (old.version === row.version || isTyped)) return old.element;
  const element = await makeCard(row, (files) => addPhotos(files, false,
    row.id), (values) => save(row, values));
  old?.element.replaceWith(element);
  element.querySelectorAll('.marks input')[fields.indexOf(activeElement)]
    ?.focus();
  cards.set(row.id, { element, version: row.version });
  return element;
}

/* Save marks of a row; its card shows them already. */
async function save(row, values) {
  const version = await saveRow(row.id, values).catch(({ message }) =>
    report(message));
  if (version) cards.get(row.id).version = version;
  await showList();
}

function showSummary() {
  const marked = rows.filter((row) => labelOf(row) !== undefined).length;
  $('count').textContent = say('app.count', { count: rows.length });
  $('here').textContent = rows.length ? describeAccuracy(rows) : '';
  $('corrected').textContent = say('app.export_marked', { count: marked });
  $('unmarked').textContent = say('app.export_unmarked',
    { count: rows.length - marked });
  $('export').disabled = $('clear').disabled = !rows.length;
  $('corrected').disabled = !marked;
  $('unmarked').disabled = marked === rows.length;
  $('older').hidden = rows.length <= shown;
}

$('export').onclick = () => exportTable(rows);
$('corrected').onclick = () => attempt(exportPhotos(rows, true));
$('unmarked').onclick = () => attempt(exportPhotos(rows, false));
$('older').onclick = () => {
  shown += STEP;
  showList();
};
$('clear').onclick = async () => {
  if (!confirm(say('app.clear_all', { count: rows.length }))) return;
  await attempt(clear());
  shown = STEP;
  await showList();
};
onChange(() => showList());
