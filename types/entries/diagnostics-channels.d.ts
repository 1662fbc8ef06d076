// The messages of this package's channels, for `subscribe` and `unsubscribe` of node:diagnostics_channel.
//
// Not a module, so that it adds to Node's types where they are, under both names, and needs none where they are not. Which of
// the two names has Node's own declarations, and which is an alias that these hide, depends on the version of its types: so
// each has all overloads. Those with a literal come first, whatever the order of the files.

declare module 'diagnostics_channel' {
  type SablockListener<Name extends keyof import('../../index.js').DiagnosticsMessages> =
    import('../../index.js').DiagnosticsListener<Name>;
  function subscribe(name: 'sablock:contended', onMessage: SablockListener<'sablock:contended'>): void;
  function subscribe(name: 'sablock:long-hold', onMessage: SablockListener<'sablock:long-hold'>): void;
  function subscribe(name: 'sablock:abandoned', onMessage: SablockListener<'sablock:abandoned'>): void;
  function subscribe(name: 'sablock:deadlock', onMessage: SablockListener<'sablock:deadlock'>): void;
  function subscribe(name: 'sablock:lost', onMessage: SablockListener<'sablock:lost'>): void;
  function subscribe(name: 'sablock:store', onMessage: SablockListener<'sablock:store'>): void;
  function subscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): void;
  function unsubscribe(name: 'sablock:contended', onMessage: SablockListener<'sablock:contended'>): boolean;
  function unsubscribe(name: 'sablock:long-hold', onMessage: SablockListener<'sablock:long-hold'>): boolean;
  function unsubscribe(name: 'sablock:abandoned', onMessage: SablockListener<'sablock:abandoned'>): boolean;
  function unsubscribe(name: 'sablock:deadlock', onMessage: SablockListener<'sablock:deadlock'>): boolean;
  function unsubscribe(name: 'sablock:lost', onMessage: SablockListener<'sablock:lost'>): boolean;
  function unsubscribe(name: 'sablock:store', onMessage: SablockListener<'sablock:store'>): boolean;
  function unsubscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): boolean;
}

declare module 'node:diagnostics_channel' {
  type SablockListener<Name extends keyof import('../../index.js').DiagnosticsMessages> =
    import('../../index.js').DiagnosticsListener<Name>;
  function subscribe(name: 'sablock:contended', onMessage: SablockListener<'sablock:contended'>): void;
  function subscribe(name: 'sablock:long-hold', onMessage: SablockListener<'sablock:long-hold'>): void;
  function subscribe(name: 'sablock:abandoned', onMessage: SablockListener<'sablock:abandoned'>): void;
  function subscribe(name: 'sablock:deadlock', onMessage: SablockListener<'sablock:deadlock'>): void;
  function subscribe(name: 'sablock:lost', onMessage: SablockListener<'sablock:lost'>): void;
  function subscribe(name: 'sablock:store', onMessage: SablockListener<'sablock:store'>): void;
  function subscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): void;
  function unsubscribe(name: 'sablock:contended', onMessage: SablockListener<'sablock:contended'>): boolean;
  function unsubscribe(name: 'sablock:long-hold', onMessage: SablockListener<'sablock:long-hold'>): boolean;
  function unsubscribe(name: 'sablock:abandoned', onMessage: SablockListener<'sablock:abandoned'>): boolean;
  function unsubscribe(name: 'sablock:deadlock', onMessage: SablockListener<'sablock:deadlock'>): boolean;
  function unsubscribe(name: 'sablock:lost', onMessage: SablockListener<'sablock:lost'>): boolean;
  function unsubscribe(name: 'sablock:store', onMessage: SablockListener<'sablock:store'>): boolean;
  function unsubscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): boolean;
}
