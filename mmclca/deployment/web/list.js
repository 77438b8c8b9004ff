// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// List of the identified photos in the storage of the browser. Each tab writes
// a value of its own, so tabs that are open together lose no photo.

import { TOP } from './answer.js';

const LIST = `identified ${new URL('.', location)} `; // for hosts of more apps
const TAB = `${LIST}${Date.now()} ${Math.random()}`;
// named and ordered as in mmclca.apis.output
const COLUMNS = ['image', 'photos', 'time', 'result', 'confidence', 'trust',
  'pred_class', 'pred_score', 'known', 'known_score',
  'sure_answer', 'sure_set',
  ...TOP.flatMap((i) => [`label_${i}`, `name_${i}`, `score_${i}`]),
  'latitude', 'longitude', 'position_error_m', 'model'];
let mine = []; // also holds what the browser does not store

const keysOf = (storage) =>
  Object.keys(storage).filter((key) => key.startsWith(LIST));

function stored() { // by other tabs, now or before
  try {
    return keysOf(localStorage).filter((key) => key !== TAB).flatMap((key) =>
      JSON.parse(localStorage[key]));
  } catch { // blocked
    return [];
  }
}

/* Return all rows, the oldest first. */
export const readList = () => [...stored(), ...mine].sort((a, b) =>
  a.time < b.time ? -1 : 1);

/* Store the rows of this tab, or throw an error with advice. */
function write() {
  try {
    localStorage.setItem(TAB, JSON.stringify(mine));
  } catch (error) {
    fail(error.name === 'QuotaExceededError' ? 'app.list_full' :
      'app.list_blocked');
  }
}

export function addRow(row) {
  mine.push(row);
  write();
}

/* Add facts to a row which is in the list. */
export function extendRow(row, facts) {
  Object.assign(row, facts);
  if (mine.includes(row)) write();
}

export function clearList() {
  mine = [];
  try {
    keysOf(localStorage).forEach((key) => localStorage.removeItem(key));
  } catch { // blocked, so nothing is stored
  }
}

/* Call a function if another tab has changed the list. */
export function onListChange(show) {
  addEventListener('storage', ({ key, newValue }) => {
    if (key === TAB && newValue === null) mine = []; // cleared there
    show();
  });
}

function cell(value = '') { // spreadsheets would run a text as a formula
  const formula = typeof value === 'string' && /^'*[=+\-@\t\r]/.test(value);
  const text = formula ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* Return the list as the content of a CSV file. */
export function tableOf(rows) {
  const cells = rows.map((row) => COLUMNS.map((name) => cell(row[name])));
  const text = [COLUMNS, ...cells].map((row) => `${row.join()}\n`).join('');
  return new Blob(['\ufeff', text], { type: 'text/csv' }); // for Excel
}
