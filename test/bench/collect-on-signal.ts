// Loaded into a server before its program (`--import`): collects everything that nothing refers to
// when SIGPWR comes, so that what its memory is afterwards is what it keeps.
const { gc } = globalThis;
if (gc === undefined) throw new Error('start with --expose-gc');
process.on('SIGPWR', () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }));
