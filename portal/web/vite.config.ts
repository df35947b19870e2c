// Builds the portal into a few files with names that stay the same, so that the Rust side can list them.
// `editor` and `chart` are what the first page does without.
import { defineConfig } from "vite";

export default defineConfig({
  // Relative: the portal works below any path.
  base: "./",
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: { app: "index.html" },
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
});
