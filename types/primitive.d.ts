import type { PrimitiveInspection } from './inspection';

/** What the primitives have in common: where they are, and what they are called. Not exported: there is no such class. */
export abstract class Primitive {
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  protected constructor();

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer it is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /**
   * Who holds it, if it can be held, and who waits: a snapshot for diagnosis, which disturbs no thread. In any thread; never
   * blocks.
   */
  inspect(): PrimitiveInspection;
}
