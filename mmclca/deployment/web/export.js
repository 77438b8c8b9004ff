// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Export the list: as a table, and photos in one folder per class.

import { make, worded } from './dom.js';
import { labelOf } from './marks.js';
import { model } from './model.js';
import { readPhotos } from './store.js';
import { tableOf } from './table.js';
import { zip } from './zip.js';

const FORBIDDEN = /[\\/:*?"<>|\p{Cc}]/gu; // in file names of some system
const clean = (name) => name.replace(FORBIDDEN, '_').replace(/^\.|[. ]+$/g,
  '_').slice(0, 100);

function download(content, kind) {
  const today = stamp(new Date()).slice(0, 10);
  const name = clean(model.facts?.name ?? 'photos');
  const link = make('a', { href: URL.createObjectURL(content),
    download: `${name}-${kind}-${today}.${content.type.split('/')[1]}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 6e4);
}

function stamp(time) { // local, as in 2026-11-29_10-15-30
  const local = new Date(time - 60_000 * time.getTimezoneOffset());
  return local.toISOString().slice(0, 19).replace('T', '_').replaceAll(':',
    '-');
}

export const exportTable = (rows) => download(tableOf(rows), 'identified');

/* Save the photos with a class, in one folder per class, or those without. */
export async function exportPhotos(rows, areMarked) {
  const chosen = rows.filter((row) => areMarked === (labelOf(row) !==
    undefined));
  const folders = {};
  for (const row of chosen) {
    const label = labelOf(row);
    if (label) folders[clean(label)] = label;
  }
  download(await zip(files(chosen, folders)), areMarked ? 'corrected' :
    'unmarked');
}

async function* files(rows, folders) {
  const encode = (text) => new TextEncoder().encode(text);
  const time = new Date();
  if (Object.keys(folders).length) { // read by mmclca.datasets.photos
    const { name, digest, classes } = model.facts;
    const facts = { name, model: digest, classes, folders };
    yield { name: 'app.json', bytes: encode(JSON.stringify(facts)), time };
  }
  const table = await tableOf(rows).arrayBuffer();
  yield { name: 'identified.csv', bytes: new Uint8Array(table), time };
  for (const row of rows) {
    const label = labelOf(row), taken = new Date(row.time);
    const folder = label ? clean(label) : 'photos';
    const plot = row.plot ? `_plot-${clean(worded(row.plot))}` : '';
    // all photos of a plant have the same start, for groups
    const plant = `${stamp(taken)}${plot}_plant-${row.id.slice(-6)}`;
    for (const [i, { jpeg }] of (await readPhotos(row.id)).entries()) {
      yield { name: `${folder}/${plant}_${i + 1}.jpg`, time: taken,
        bytes: new Uint8Array(jpeg) };
    }
  }
}
