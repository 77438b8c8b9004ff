// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Decode photos to the pixels that mmclca.datasets.decoding has in Python.
// Photos of which browsers make other pixels are refused.

const MAX = 60; // megapixels
const ROWS = 256; // read at a time: browsers limit the area of a canvas
const LONGEST = 1024; // side of the stored photo
const SIGNATURES = { JPEG: /^\xff\xd8\xff/, PNG: /^\x89PNG\r\n\x1a\n/,
  WebP: /^RIFF[^]{4}WEBP/, GIF: /^GIF8[79]a/, BMP: /^BM/,
  AVIF: /^[^]{4}ftypavi/ };
const CHECKS = { PNG: checkPng, WebP: checkWebp, GIF: checkGif,
  BMP: checkBmp, AVIF: checkAvif };
const refuse = (kind) => fail('app.photo.refused',
  { problem: say(`app.photo.${kind}`) });
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset);
const textOf = (bytes, from, to) =>
  String.fromCharCode(...bytes.subarray(from, to));

/* Open a photo: its bitmap, which the caller closes, and how to turn it. */
export async function openPhoto(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const start = textOf(bytes, 0, 16);
  const kind = Object.keys(SIGNATURES).find((x) => SIGNATURES[x].test(start));
  const unreadable = () => refuse('unreadable');
  const facts = (kind ? CHECKS[kind]?.(bytes) : unreadable()) ?? {};
  const blob = new Blob(facts.parts ?? [bytes]);
  const size = await megapixels(blob).catch(unreadable);
  if (size > MAX) {
    fail('app.photo.megapixels', { number: Math.ceil(size), limit: MAX });
  }
  const options = { premultiplyAlpha: 'none', colorSpaceConversion: 'none' };
  const bitmap = await createImageBitmap(blob, options).catch(unreadable);
  return { ...facts, bitmap };
}

async function megapixels(blob) { // without decoding
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await new Promise((onload, onerror) => Object.assign(image, { onload,
    onerror })).finally(() => URL.revokeObjectURL(image.src));
  return image.naturalWidth * image.naturalHeight / 1e6;
}

function checkPng(bytes) {
  const view = viewOf(bytes), [depth, color] = bytes.subarray(24);
  let parts = [bytes], isTransparent = color > 3;
  for (let at = 8, kind; kind !== 'IDAT' && at + 8 < bytes.length;) {
    const end = at + 12 + view.getUint32(at);
    kind = textOf(bytes, at + 4, at + 8);
    if (kind === 'tRNS' && depth === 16) refuse('png_trns');
    // Python has the still image of an animation, not its first frame
    if (kind === 'acTL') parts = [bytes.slice(0, at), bytes.slice(end)];
    at = end;
  }
  return { parts, isDeep: depth === 16 && !isTransparent };
}

function checkWebp(bytes) {
  const view = viewOf(bytes);
  if (textOf(bytes, 12, 16) !== 'VP8X' || !(bytes[20] & 8)) return undefined;
  for (let at = 12; at + 8 < bytes.length;) {
    const size = view.getUint32(at + 4, true);
    if (textOf(bytes, at, at + 4) === 'EXIF') {
      const orientation = orientationOf(bytes.subarray(at + 8, at + 8 + size));
      bytes.set([120, 120, 120, 120], at); // no browser turns it a second time
      return { orientation };
    }
    at += 8 + size + size % 2;
  }
  return undefined;
}

function orientationOf(exif) {
  const at = textOf(exif, 0, 6) === 'Exif\0\0' ? 6 : 0, view = viewOf(exif);
  const isLittle = textOf(exif, at, at + 2) === 'II';
  try {
    const start = at + view.getUint32(at + 4, isLittle);
    for (let i = 0; i < view.getUint16(start, isLittle); i++) {
      const entry = start + 2 + 12 * i;
      if (view.getUint16(entry, isLittle) === 274) {
        return view.getUint16(entry + 8, isLittle);
      }
    }
  } catch { // damaged, which Python ignores
  }
  return undefined;
}

function checkGif(bytes) { // the first frame may be smaller than the image
  const table = (flags) => flags & 128 ? 3 << (flags & 7) + 1 : 0;
  let at = 13 + table(bytes[10]);
  while (bytes[at] === 33) { // extensions, in blocks
    for (at += 2; bytes[at]; at += 1 + bytes[at]);
    at += 1;
  }
  if (at + 9 >= bytes.length) refuse('gif_damaged');
  const view = viewOf(bytes), number = (place) => view.getUint16(place, true);
  if (number(at + 1) || number(at + 3) || number(at + 5) < number(6) ||
      number(at + 7) < number(8)) {
    refuse('gif_margin');
  }
}

function checkBmp(bytes) { // decoders spread 5 bits differently
  if (bytes[14] > 12 && bytes[28] === 16) refuse('bmp');
}

function checkAvif(bytes) { // decoders differ in all but plain photos
  const view = viewOf(bytes), start = view.getUint32(0);
  const meta = textOf(bytes, start, start + view.getUint32(start));
  const codec = meta.indexOf('av1C'), isDeep = meta.charCodeAt(codec + 6) & 64;
  if (isDeep || textOf(bytes, 8, 12) === 'avis' ||
      /auxC|clap|grid|tmap/.test(meta)) {
    refuse('avif');
  }
}

function contextOf(width, height) {
  const canvas = Object.assign(document.createElement('canvas'),
    { width, height });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.fillStyle = '#fff'; // behind transparent pixels
  context.fillRect(0, 0, width, height);
  return context;
}

/* Return what EXIF says: whether to swap the axes, and then to mirror them. */
function turnOf(orientation) {
  const [isSwapped, isRight, isBottom] = { 2: [0, 1, 0], 3: [0, 1, 1],
    4: [0, 0, 1], 5: [1, 0, 0], 6: [1, 1, 0], 7: [1, 1, 1],
    8: [1, 0, 1] }[orientation] ?? [0, 0, 0];
  return { isSwapped, isRight, isBottom };
}

/* Return RGB pixels of the upright photo over white. */
export function pixelsOf({ bitmap, isDeep, orientation }) {
  const { isSwapped, isRight, isBottom } = turnOf(orientation);
  const [width, height] = isSwapped ? [bitmap.height, bitmap.width] :
    [bitmap.width, bitmap.height];
  // where the first pixel goes, and how far the next column and row are
  const across = isRight ? -3 : 3, down = isBottom ? -3 * width : 3 * width;
  const [right, below] = isSwapped ? [down, across] : [across, down];
  const first = (isRight && 3 * (width - 1)) +
    (isBottom && 3 * width * (height - 1));
  const pixels = new Uint8Array(3 * width * height);
  for (let top = 0; top < bitmap.height; top += ROWS) {
    const data = rowsOf(bitmap, top);
    for (let from = 0, to = first + top * below; from < data.length;) {
      const end = from + 4 * bitmap.width, next = to + below;
      for (; from < end; from += 4, to += right) {
        pixels[to] = data[from];
        pixels[to + 1] = data[from + 1];
        pixels[to + 2] = data[from + 2];
      }
      to = next;
    }
  }
  if (isDeep && pixels.every((value) => value < 64)) {
    refuse('png_deep');
  }
  return { pixels, width, height };
}

function rowsOf(bitmap, top) { // RGBA
  const height = Math.min(ROWS, bitmap.height - top);
  const context = contextOf(bitmap.width, height);
  context.drawImage(bitmap, 0, -top);
  return context.getImageData(0, 0, bitmap.width, height).data;
}

/* Return the upright photo as a JPEG file of at most 1,024 px. */
export async function reduce({ bitmap, orientation }) {
  const { isSwapped, isRight, isBottom } = turnOf(orientation);
  const across = isRight ? -1 : 1, down = isBottom ? -1 : 1;
  const scale = Math.min(LONGEST / Math.max(bitmap.width, bitmap.height), 1);
  const [width, height] = [bitmap.width, bitmap.height].map((side) =>
    Math.max(Math.round(side * scale), 1));
  const context = isSwapped ? contextOf(height, width) :
    contextOf(width, height);
  const { canvas } = context;
  context.imageSmoothingQuality = 'high';
  context.setTransform(...isSwapped ? [0, down, across, 0] :
    [across, 0, 0, down], canvas.width / 2, canvas.height / 2);
  context.drawImage(bitmap, -width / 2, -height / 2, width, height);
  const file = await new Promise((resolve) => canvas.toBlob(resolve,
    'image/jpeg', 0.9));
  return file.arrayBuffer();
}
