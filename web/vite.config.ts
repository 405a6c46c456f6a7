// Builds the viewer into web/dist, from where the server's binary embeds it: no inlined assets, no
// preload helper, stable names with a content hash. Pages: index.html. Guide: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config';

export default defineConfig({
  base: './',
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:9090' } },
  test: { include: ['src/**/*.test.ts'], environment: 'node', css: true },
});
