// Copyright (c) mmclca contributors. Licensed under Apache-2.0.
// Write a ZIP archive of files that are already compressed.

const LARGEST = 0xffffffff; // bytes, and 65,535 files, without ZIP64
const MOST = 0xffff;
const UTF8 = 1 << 11; // names are in UTF-8
const TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let value = i;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? value >>> 1 ^ 0xedb88320 : value >>> 1;
  }
  return value;
});

function checksum(bytes) { // CRC-32
  let value = LARGEST;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 255] ^ value >>> 8;
  return (value ^ LARGEST) >>> 0;
}

/* Return numbers in little-endian bytes; each is [value, number of bytes]. */
function pack(...numbers) {
  const bytes = numbers.flatMap(([value, length]) =>
    Array.from({ length }, (_, i) => value / 256 ** i & 255));
  return new Uint8Array(bytes);
}

function packTime(time) { // as in MS-DOS
  const seconds = time.getSeconds() >> 1;
  const clock = time.getHours() << 11 | time.getMinutes() << 5 | seconds;
  const year = Math.max(time.getFullYear() - 1980, 0);
  const day = year << 9 | time.getMonth() + 1 << 5 | time.getDate();
  return clock + day * 65536;
}

/* Return an archive of files, each with name, bytes and time. */
export async function zip(files) {
  const parts = [], listing = [];
  let at = 0, count = 0;
  for await (const { name, bytes, time } of files) {
    const encoded = new TextEncoder().encode(name);
    const facts = [[20, 2], [UTF8, 2], [0, 2], [packTime(time), 4],
      [checksum(bytes), 4], [bytes.length, 4], [bytes.length, 4],
      [encoded.length, 2], [0, 2]];
    // a browser may keep a Blob on the disk
    parts.push(new Blob([pack([0x04034b50, 4], ...facts), encoded, bytes]));
    listing.push(pack([0x02014b50, 4], [20, 2], ...facts, [0, 2], [0, 2],
      [0, 2], [0, 4], [at, 4]), encoded);
    at += parts.at(-1).size;
    count += 1;
  }
  const list = new Blob(listing);
  if (at + list.size > LARGEST || count > MOST) fail('app.zip_large');
  const end = pack([0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2],
    [list.size, 4], [at, 4], [0, 2]);
  return new Blob([...parts, list, end], { type: 'application/zip' });
}
