// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Write rows as a CSV file.

import { TOP } from './answer.js';

// named and ordered as in mmclca.apis.output
const COLUMNS = ['image', 'photos', 'time', 'result', 'confidence', 'trust',
  'verdict', 'correction', 'plot', 'note',
  'pred_class', 'pred_score', 'known', 'known_score',
  'sure_answer', 'sure_set',
  ...TOP.flatMap((i) => [`label_${i}`, `name_${i}`, `score_${i}`]),
  'latitude', 'longitude', 'position_error_m', 'model'];

function cell(value = '') { // spreadsheets would run a text as a formula
  const formula = typeof value === 'string' && /^'*[=+\-@\t\r]/.test(value);
  const text = formula ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* Return rows as the content of a CSV file. */
export function tableOf(rows) {
  const cells = rows.map((row) => COLUMNS.map((name) => cell(row[name])));
  const text = [COLUMNS, ...cells].map((row) => `${row.join()}\n`).join('');
  return new Blob(['\ufeff', text], { type: 'text/csv' }); // for Excel
}
