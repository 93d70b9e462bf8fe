// Builds the console's pages into dist/web, as files that the server serves under a strict content
// security policy: nothing inlined into the page, no data: scripts, no source maps, no external
// host.

import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { guide } from './guide.ts';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react(), tailwindcss(), guide(fileURLToPath(new URL('../../..', import.meta.url)))],
  resolve: { alias: { 'node:net': fileURLToPath(new URL('src/api/net.ts', import.meta.url)) } },
  build: {
    outDir: fileURLToPath(new URL('../../../dist/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    // The schemas of the contract are one chunk, loaded with the first form.
    chunkSizeWarningLimit: 900,
  },
});
