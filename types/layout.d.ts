/** An object that lives in shared memory. */
export interface LayoutObject {
  /** The byte offset in its buffer at which it begins. */
  readonly byteOffset: number;
}

/** A class of this package whose objects live in shared memory. */
export interface LayoutClass {
  // biome-ignore lint/suspicious/noExplicitAny: whatever follows the buffer.
  new (buffer: SharedArrayBuffer, ...rest: any[]): LayoutObject;
  /** The number of bytes that it takes. */
  readonly BYTES: number;
  /** The number that its byte offset must be a multiple of. */
  readonly ALIGN: number;
}

/** A class of typed arrays. */
export interface LayoutArrayClass {
  new (buffer: SharedArrayBuffer, byteOffset?: number, length?: number): ArrayBufferView;
  /** The number of bytes that an element takes. */
  readonly BYTES_PER_ELEMENT: number;
}

/** One field of a {@link layout}: a class, or an array that begins with one. */
export type LayoutField = LayoutClass | LayoutArrayClass | readonly [LayoutClass | LayoutArrayClass, ...unknown[]];

/**
 * The arguments that may follow a class in a field of a {@link layout}: its arguments after the offset, or a number of
 * elements.
 */
export type LayoutArguments<Class> = Class extends LayoutArrayClass
  ? [length?: number]
  : Class extends LayoutClass
    ? ConstructorParameters<Class> extends [unknown?, unknown?, ...infer Rest]
      ? Rest
      : never
    : never;

/** The field as it may be written, by what its class takes. */
export type CheckedLayoutField<Field> = Field extends readonly [infer Class, ...unknown[]]
  ? readonly [Class, ...LayoutArguments<Class>]
  : [] extends LayoutArguments<Field>
    ? Field
    : never;

/** The object that a field of a {@link layout} becomes. */
export type LayoutInstance<Field> = Field extends readonly [infer Class, ...unknown[]]
  ? LayoutInstance<Class>
  : Field extends new (
        ...args: never[]
      ) => infer Instance
    ? Instance
    : never;

/** Places in shared memory for the fields of a {@link layout}. */
export interface Layout<Fields> {
  /** The number of bytes that it takes, rounded up, so that another may follow it in one buffer. */
  readonly byteLength: number;
  /** New, zeroed shared memory of `byteLength`: all of its locks are free. */
  create(): SharedArrayBuffer;
  /**
   * An object with an instance for each field, in `buffer` from `byteOffset` on (default: 0). Changes nothing in memory.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or `byteOffset` no number.
   * @throws `ERR_OUT_OF_RANGE` if the layout does not lie inside the buffer, aligned to the largest alignment of its fields.
   */
  on(buffer: SharedArrayBuffer, byteOffset?: number): { [Name in keyof Fields]: LayoutInstance<Fields[Name]> };
}

/**
 * Places for several primitives and typed arrays in one buffer, in the order given, each aligned: no offsets to count by
 * hand. The same fields are at the same places in every thread, version and runtime. In any thread; never blocks.
 *
 * @param fields By name a class, or an array that begins with one: what follows are the arguments of its constructor after
 *   the offset, or the length of a typed array (default: 1).
 * @throws `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` if a field is nothing of the kind. `ERR_INVALID_ARG_TYPE` too for a key that is an
 *   array index, such as `1`: JavaScript does not keep its order.
 * @example
 * ```js
 * import { layout, LockTable, Mutex } from 'sablock';
 *
 * const places = layout({ lock: Mutex, rows: [LockTable, 1000], total: Int32Array, prices: [Float64Array, 1000] });
 * const memory = places.create(); // to be sent to other threads, which have the same layout
 * const { lock, rows, total, prices } = places.on(memory);
 * await lock.executeLocked(() => {
 *   total[0] += prices[rows.indexFor('a')];
 * });
 * ```
 */
export function layout<Fields extends Record<string, LayoutField>>(
  fields: Fields & { [Name in keyof Fields]: CheckedLayoutField<Fields[Name]> },
): Layout<Fields>;
