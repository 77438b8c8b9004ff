// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Texts in the language of the browser. The export writes the tables of
// mmclca/languages here. The page imports this file; the service worker, which
// is not a module, runs it.

const TEXTS = {};
const language = navigator.languages.map((tag) => tag.split('-')[0]).find(
  (name) => name in TEXTS) ?? 'en';

/* Return a text with values instead of the names in braces. */
function say(key, values = {}) {
  return TEXTS[language][key].replace(/\{(\w+)\}/g, (_, name) =>
    values[name]);
}

const fail = (key, values) => { throw Error(say(key, values)); };

/* Translate the elements of a page that name their text. */
function translate(page) {
  page.documentElement.lang = language;
  for (const element of page.querySelectorAll('[data-text]')) {
    element.textContent = say(element.dataset.text);
  }
  for (const element of page.querySelectorAll('[data-label]')) {
    element.ariaLabel = say(element.dataset.label);
  }
}

Object.assign(globalThis, { fail, say, translate });
