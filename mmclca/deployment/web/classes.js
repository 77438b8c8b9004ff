// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// List of the classes: what they look like, which can occur here, and how far
// to trust an answer.

import { $, make, percent, worded } from './dom.js';
import { model } from './model.js';
import { calibrate, LEVEL } from './sets.js';

const TICKS = `left out ${new URL('.', location)}`; // for hosts of more apps

function leftOut() { // names, before
  try {
    return JSON.parse(localStorage[TICKS] ?? '[]');
  } catch { // blocked
    return [];
  }
}

/* Return a training photo of a class, if the app has any. */
export function classPhoto(name) {
  const { classes, class_photos: photos } = model.facts;
  const src = photos[classes.indexOf(name)];
  const alt = say('app.reference', { name: worded(name) });
  return src ? [make('img', { src, alt, loading: 'lazy' })] : [];
}

/* List the classes with boxes to tick; at least two are kept. */
export function listClasses() {
  const names = model.facts.classes, saved = leftOut();
  const boxes = names.map((name) => make('input', { type: 'checkbox',
    checked: !saved.includes(name) }));
  $('classes').append(...names.map((name, i) => make('li', {},
    make('label', {}, boxes[i], ` ${worded(name)}`, ...classPhoto(name)))));
  $('class-names').append(...names.map((name) => make('option',
    { value: worded(name) })));
  const update = () => {
    const ticked = [...names.keys()].filter((i) => boxes[i].checked);
    model.kept = ticked.length < 2 ? [...names.keys()] : ticked;
    model.rule = calibrate(model.facts.sure, model.kept);
    showCounts(ticked.length, names.length);
    $('guarantee').textContent = describeGuarantee(model.rule);
    $('meaning').replaceChildren(...describeTrust(model.rule).map((text) =>
      make('li', {}, text)));
  };
  const change = (box = () => {}) => { // after a click
    boxes.forEach(box);
    try {
      localStorage.setItem(TICKS, JSON.stringify(names.filter((_, i) =>
        !boxes[i].checked)));
    } catch { // blocked or full: the ticks end with this page
    }
    update();
  };
  $('classes').onchange = () => change();
  $('all').onclick = () => change((box) => { box.checked = true; });
  $('none').onclick = () => change((box) => { box.checked = false; });
  $('names').hidden = false;
  update();
}

function showCounts(ticked, count) {
  const isPart = ticked >= 2 && ticked < count;
  $('number').textContent = say(isPart ? 'app.classes_ticked' :
    'app.classes', { ticked, count });
}

function describeGuarantee({ limit, problem }) {
  if (limit) return say('app.guarantee', { level: LEVEL });
  return problem ? say('app.no_guarantee', { level: LEVEL, problem }) : '';
}

/* Explain sure, check and unknown with the figures of fit. */
function describeTrust({ trust }) {
  const describe = (word) => {
    const { right, number } = trust[word];
    return number ? say(`app.meaning.${word}`, { right, number,
      share: percent(right / number) }) :
      say('app.meaning.none', { word: say(`app.trust.${word}`) });
  };
  const lines = trust ? [describe('sure'), describe('check')] :
    [say('app.meaning.check_all')];
  const { threshold, false_alarms: alarms } = model.facts;
  if (threshold) {
    lines.push(alarms ? say('app.meaning.unknown', {
      share: percent(alarms.value), low: percent(alarms.low),
      high: percent(alarms.high) }) : say('app.meaning.unknown_unmeasured'));
  }
  return lines;
}

/* Return number of classes and accuracy in words. */
export function describeModel() {
  const { accuracy, classes, validity } = model.facts;
  const lines = [say('app.about', { count: classes.length })];
  if (accuracy) {
    const { value, low, high } = accuracy;
    const photos = say(`app.photos.${validity}`);
    lines.push(low === null ?
      say('app.accuracy_alone', { accuracy: percent(value), photos }) :
      say('app.accuracy', { accuracy: percent(value), low: percent(low),
        high: percent(high), photos }), say('app.accuracy_elsewhere'));
  }
  return lines.join(' ');
}
