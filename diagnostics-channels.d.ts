// The messages of this package's channels, for `subscribe` and `unsubscribe` of node:diagnostics_channel.
//
// Not a module, so that it adds to Node's types where they are, under both names, and needs none where they are not. Which of
// the two names has Node's own declarations, and which is an alias that these hide, depends on the version of its types: so
// each has all overloads. Those with a literal come first, whatever the order of the files.

declare module 'diagnostics_channel' {
  function subscribe(
    name: 'sablock:contended',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:contended'>,
  ): void;
  function subscribe(
    name: 'sablock:long-hold',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:long-hold'>,
  ): void;
  function subscribe(
    name: 'sablock:abandoned',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:abandoned'>,
  ): void;
  function subscribe(
    name: 'sablock:deadlock',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:deadlock'>,
  ): void;
  function subscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): void;
  function unsubscribe(
    name: 'sablock:contended',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:contended'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:long-hold',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:long-hold'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:abandoned',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:abandoned'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:deadlock',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:deadlock'>,
  ): boolean;
  function unsubscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): boolean;
}

declare module 'node:diagnostics_channel' {
  function subscribe(
    name: 'sablock:contended',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:contended'>,
  ): void;
  function subscribe(
    name: 'sablock:long-hold',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:long-hold'>,
  ): void;
  function subscribe(
    name: 'sablock:abandoned',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:abandoned'>,
  ): void;
  function subscribe(
    name: 'sablock:deadlock',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:deadlock'>,
  ): void;
  function subscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): void;
  function unsubscribe(
    name: 'sablock:contended',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:contended'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:long-hold',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:long-hold'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:abandoned',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:abandoned'>,
  ): boolean;
  function unsubscribe(
    name: 'sablock:deadlock',
    onMessage: import('./index.js').DiagnosticsListener<'sablock:deadlock'>,
  ): boolean;
  function unsubscribe(name: string | symbol, onMessage: (message: unknown, name: string | symbol) => void): boolean;
}
