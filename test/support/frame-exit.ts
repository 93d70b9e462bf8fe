// A process that exits while its worker blocks in a frame server's turn, and a peer is connected.
import { FrameWorker } from './frame-client.ts';

const server = await FrameWorker.start();
await server.client();
process.exit(7);
