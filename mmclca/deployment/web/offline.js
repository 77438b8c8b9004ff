// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Keep the app for use without a network, and offer new versions.

import { $ } from './dom.js';
import { isStarted } from './model.js';

/* Register the service worker, or say why this browser has none. */
async function register() {
  if (!isSecureContext) fail('app.needs_https');
  const workers = navigator.serviceWorker ?? fail('app.no_workers');
  const options = { updateViaCache: 'none' };
  return workers.register('sw.js', options).catch(async () => {
    await checkScript('sw.js');
    const address = new URL('certificate.crt', location).href;
    const isServed = await fetch(address, { method: 'HEAD' }).catch(() => 0);
    if (isServed.ok) {
      Object.assign($('certificate'), { href: address, hidden: false });
      fail('app.needs_certificate', { address });
    }
    fail('app.storage_blocked');
  });
}

/* Ask a service worker whether it opens this page without a network. */
function opensOffline(worker) {
  const { port1, port2 } = new MessageChannel();
  worker.postMessage(location.href, [port2]);
  return new Promise((resolve) => { port1.onmessage = resolve; }).then(
    ({ data }) => {
      if (data.isStored) return;
      throw Error(data.message ?? say('app.files_missing'));
    });
}

export async function keepOffline() {
  const show = (text) => { $('offline').textContent = text; };
  const sayWhyNot = ({ message }) =>
    show(say('app.only_online', { problem: message }));
  if (globalThis.EMBEDDED) return show(say('app.one_file'));
  const registration = await register().catch(sayWhyNot);
  if (!registration) return;
  let reason = say('app.not_stored');
  const update = () => {
    const { active, installing, waiting } = registration;
    installing?.addEventListener('statechange', update);
    $('update').hidden = !(active && waiting);
    if (!isStarted()) return; // a new version may start
    if (active) {
      opensOffline(active).then(() => show(say('app.offline')), sayWhyNot);
    } else if (installing ?? waiting) {
      show(say('app.saving'));
    } else {
      sayWhyNot({ message: reason });
    }
  };
  registration.addEventListener('updatefound', update);
  navigator.serviceWorker.onmessage = ({ data }) => {
    reason = data; // why the new version cannot be stored
    update();
  };
  $('reload').onclick = () => {
    registration.waiting.onstatechange = () => location.reload();
    registration.waiting.postMessage('replace the old version');
  };
  update();
}
