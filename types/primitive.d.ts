import type { PrimitiveInspection } from './inspection';

/** The base of the primitives: where they are, and what they are called. Not exported: there is no such class. */
export abstract class Primitive {
  /** The number that its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  protected constructor();

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** The byte offset in the buffer. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /**
   * Returns its holders, if it can be held, and its waiters: a snapshot for diagnosis, which disturbs no thread. In any thread;
   * never blocks.
   */
  inspect(): PrimitiveInspection;
}
