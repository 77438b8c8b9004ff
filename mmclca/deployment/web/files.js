// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Fetch files of the app, and name what is wrong with a file. The page imports
// this file; the service worker, which is not a module, runs it.

async function fetchExported(name, integrity) { // fails with another digest
  if (globalThis.EMBEDDED) return new Response(EMBEDDED[name]); // one file
  const options = { integrity, cache: 'no-cache' };
  const response = await fetch(name, options).catch(() => undefined);
  if (response?.ok) return response;
  const problem = response ? refused(response) : await explain(name);
  const file = name === './' ? 'index.html' : name;
  return fail('app.file.problem', { file, problem });
}

const refused = ({ status }) => say('app.file.refused', { status });

async function explain(name) { // of a file that was not fetched
  const response = await fetch(name, { cache: 'no-cache' }).catch(() => 0);
  if (!response) return say('app.file.no_connection');
  return response.ok ? say('app.file.changed') : refused(response);
}

async function checkScript(file) { // which the browser did not run
  const type = (await fetchExported(file)).headers.get('Content-Type');
  if (/javascript/.test(type)) return;
  const problem = say('app.file.type', { type });
  fail('app.file.problem', { file, problem });
}

Object.assign(globalThis, { checkScript, fetchExported });
