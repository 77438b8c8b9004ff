// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Create elements, and write numbers and names.

export const $ = (id) => document.getElementById(id);

/* Create an element with properties and children. */
export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export const percent = (share) => `${(100 * share).toFixed(1)}%`;
export const worded = (name) => name.replaceAll('_', ' ');

/* Show an error, once. */
export function report(text) {
  const last = $('errors').lastElementChild;
  if (last?.textContent !== text) $('errors').append(make('li', {}, text));
}
