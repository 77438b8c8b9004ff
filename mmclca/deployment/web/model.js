// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Load the exported model, and run it on photos.

const RUNTIME = 'runtime/ort.wasm.bundle.min.js';
const WASM = 'runtime/ort-wasm-simd-threaded.wasm';
const WITH_SIMD = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96,
  0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);
// model.json; labels of the classes that can occur; rule for sets of classes
export const model = { facts: undefined, kept: [], rule: {} };
let ort, session;

export const isStarted = () => Boolean(session);

export async function readFacts() {
  model.facts = await (await fetchExported('model.json')).json().catch(() =>
    fail('app.other_content'));
}

export async function startModel() {
  globalThis.WebAssembly?.validate(WITH_SIMD) || fail('app.no_simd');
  const { file, integrity } = model.facts;
  const response = await fetchExported(file, integrity);
  const content = new Uint8Array(await response.arrayBuffer());
  ort = await import(`./${RUNTIME}`).catch(async () => {
    await checkScript(RUNTIME);
    fail('app.old_browser');
  });
  // the proxy is a worker, which keeps the page responsive; it needs a host
  Object.assign(ort.env.wasm, { numThreads: 1 }, globalThis.EMBEDDED ?
    { wasmBinary: EMBEDDED[WASM].slice().buffer } : { proxy: true });
  const options = { executionProviders: ['wasm'] };
  session = await ort.InferenceSession.create(content, options).catch(
    async () => {
      for (const [name, digest] of Object.entries(model.facts.runtime)) {
        await fetchExported(name, digest);
      }
      fail('app.not_started');
    });
}

/* Return logits and nearest similarity of a photo. */
export async function run({ pixels, width, height }) {
  const image = new ort.Tensor('uint8', pixels, [height, width, 3]);
  const feeds = { [session.inputNames[0]]: image };
  const { logits, nearest } = await session.run(feeds).catch(() =>
    fail('app.model_failed'));
  logits.data.every(Number.isFinite) || fail('app.no_numbers');
  return { logits: logits.data, nearest: nearest?.data[0] };
}
