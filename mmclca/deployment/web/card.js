// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Show the answer for a plant.

import { describeUnknown, TOP } from './answer.js';
import { classPhoto } from './classes.js';
import { make, percent, worded } from './dom.js';
import { makeMarks } from './marks.js';
import { model } from './model.js';
import { LEVEL } from './sets.js';
import { readPhotos } from './store.js';

/* Return a card with the last photo of a plant, its answer and its marks.

Add is called with further photos, save with changed values. */
export async function makeCard(row, add, save) {
  const photos = await readPhotos(row.id);
  const isUnknown = row.known === 'no';
  const trust = make('span', { className: 'trust' },
    say(`app.trust.${row.trust}`));
  const title = make('h3', {}, ...isUnknown ? [trust] :
    [`${worded(row.pred_class)} `, trust]);
  const sure = row.sure_answer ?
    [make('p', {}, `${LEVEL}%: ${worded(row.sure_answer)}`)] : [];
  const why = isUnknown ? describeUnknown(row) : describeShare(row);
  return make('article', { className: row.trust },
    make('div', { className: 'pictures' },
      ...photos.slice(-1).map((photo) => showPhoto(photo)),
      ...classPhoto(row.pred_class)),
    make('div', {}, title, make('small', {}, why), ...sure, listScores(row),
      make('small', {}, `${row.image} · `, make('time', {},
        new Date(row.time).toLocaleString())), makeMarks(row, save),
      ...row.model === model.facts.digest ? [makePlantButton(add)] : []));
}

/* Return how often answers with the same word of trust are right. */
function describeShare({ trust, model: digest }) {
  const { right, number } = model.rule.trust?.[trust] ?? {};
  return number && digest === model.facts.digest ?
    say('app.share', { share: percent(right / number) }) : '';
}

function listScores(row) {
  const isUnknown = row.known === 'no';
  return make('ol', {}, ...TOP.filter((i) => `name_${i}` in row).map((i) => {
    const value = row[`score_${i}`], name = worded(row[`name_${i}`]);
    const isNearest = isUnknown && i === 1;
    return make('li', {}, make('span', {}, isNearest ?
      say('app.nearest', { name }) : name), percent(value),
    make('meter', { value, ariaHidden: 'true' }));
  }));
}

function showPhoto({ jpeg, name }) {
  const file = new Blob([jpeg], { type: 'image/jpeg' });
  const src = URL.createObjectURL(file);
  return make('img', { src, alt: name, onload: () =>
    URL.revokeObjectURL(src) });
}

/* Return a button to add photos to a plant. */
function makePlantButton(add) {
  const input = make('input', { type: 'file', accept: 'image/*',
    multiple: true });
  input.onchange = () => add([...input.files]);
  return make('label', { className: 'button' }, say('app.add_photo'), input);
}
