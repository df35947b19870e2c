// Puts the built files, compressed, where the Rust side embeds them; with --check, only says whether they differ.
// What is compared is the contents: another version of zlib may compress the same file to other bytes.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

const built = new URL("../dist/", import.meta.url).pathname;
const kept = new URL("../../assets/", import.meta.url).pathname;
const check = process.argv.includes("--check");

const names = readdirSync(built).sort();
mkdirSync(kept, { recursive: true });
const known = readdirSync(kept).map((name) => name.replace(/\.gz$/, "")).sort();
// The page itself stays plain: scripts that wait for it may not understand gzip.
const fileOf = (name) => join(kept, name === "index.html" ? name : `${name}.gz`);
const contents = (name) => {
  try {
    const bytes = readFileSync(fileOf(name));
    return name === "index.html" ? bytes : gunzipSync(bytes);
  } catch {
    return null;
  }
};
const changed = names.filter((name) => !contents(name)?.equals(readFileSync(join(built, name))));
const gone = known.filter((name) => !names.includes(name));

if (check) {
  if (changed.length + gone.length > 0) {
    console.error(`portal/assets is stale (${[...changed, ...gone].join(", ")}): run \`cargo xtask portal\` and commit it`);
    process.exit(1);
  }
  console.log("portal/assets is what the source builds");
} else {
  for (const name of changed) {
    const bytes = readFileSync(join(built, name));
    writeFileSync(fileOf(name), name === "index.html" ? bytes : gzipSync(bytes, { level: 9 }));
  }
  for (const name of gone) rmSync(fileOf(name));
  const sizes = names.map((name) => [name, readFileSync(fileOf(name)).length]);
  for (const [name, size] of sizes) console.log(`${name.padEnd(12)} ${String(size).padStart(8)} bytes gzipped`);
  console.log(`${"together".padEnd(12)} ${String(sizes.reduce((sum, [, size]) => sum + size, 0)).padStart(8)}`);
}
