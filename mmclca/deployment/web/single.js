// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Open an app that is one file: unpack its files, and start it. Other scripts
// name each other, and their addresses are known here only.

async function unpack() {
  const packed = document.getElementById('packed').textContent.trim();
  const { body } = await fetch(`data:application/gzip;base64,${packed}`);
  const stream = body.pipeThrough(new DecompressionStream('gzip'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const [length] = new Uint32Array(bytes.slice(0, 4).buffer);
  const listed = new TextDecoder().decode(bytes.subarray(4, 4 + length));
  let at = 4 + length;
  return JSON.parse(listed).map(([name, size]) => [name,
    bytes.subarray(at, at += size)]);
}

unpack().then((files) => {
  globalThis.EMBEDDED = Object.fromEntries(files);
  const scripts = files.filter(([name]) => name.endsWith('.js'));
  const imports = Object.fromEntries(scripts.map(([name, content]) => [name,
    URL.createObjectURL(new Blob([content], { type: 'text/javascript' }))]));
  const map = document.createElement('script');
  Object.assign(map, { type: 'importmap',
    textContent: JSON.stringify({ imports }) });
  document.head.append(map);
  return import('app.js');
}).catch(({ message }) => {
  document.getElementById('errors').textContent = message;
});
