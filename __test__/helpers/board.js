// A line of text in shared memory, on which a thread says what it is doing: readable while that thread is blocked.

const TEXT = 4;
const BYTES = 256;

exports.createBoard = () => new SharedArrayBuffer(BYTES);

exports.writeBoard = (board, text) => {
  const bytes = new Uint8Array(board);
  const length = Math.min(text.length, BYTES - TEXT);
  for (let index = 0; index < length; index++) bytes[TEXT + index] = text.charCodeAt(index);
  Atomics.store(new Int32Array(board), 0, length);
};

exports.readBoard = (board) => {
  const length = Atomics.load(new Int32Array(board), 0);
  return String.fromCharCode(...new Uint8Array(board).slice(TEXT, TEXT + length)) || 'nothing yet';
};
