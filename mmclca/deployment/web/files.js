// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Fetch files of the app, and name what is wrong with a file. The page imports
// this file; the service worker, which is not a module, runs it.

async function fetchExported(name, integrity) { // fails with another digest
  const options = { integrity, cache: 'no-cache' };
  const response = await fetch(name, options).catch(() => undefined);
  if (response?.ok) return response;
  const reason = response ? refused(response) : await explain(name);
  throw Error(`${name === './' ? 'index.html' : name}: ${reason}.`);
}

const refused = ({ status }) => `the host answers with error ${status}. ` +
  'The app may be changing now: reload this page later. If the error stays, ' +
  'copy all files of the app to the host again, or let the host serve files ' +
  'of this type';

async function explain(name) { // of a file that was not fetched
  const response = await fetch(name, { cache: 'no-cache' }).catch(() => 0);
  if (!response) return 'no connection to the host; reload this page later';
  return response.ok ? 'the host sends other content than exported. If ' +
    'the host adds scripts or optimizes files, turn this off. Otherwise ' +
    'copy all files of the app to the host again' : refused(response);
}

async function checkScript(name) { // which the browser did not run
  const type = (await fetchExported(name)).headers.get('Content-Type');
  if (/javascript/.test(type)) return;
  throw Error(`${name}: the host sends it as ${type}; it must be ` +
    'text/javascript.');
}

Object.assign(globalThis, { checkScript, fetchExported });
