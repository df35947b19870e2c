import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { hmac, sha256, toBase64 } from "../src/lib/hmac";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

describe("signing", () => {
  it("hashes like everybody else, at every length around a block", () => {
    for (let length = 0; length < 200; length++) {
      const bytes = Uint8Array.from({ length }, (_, n) => (n * 7 + length) & 255);
      expect(toBase64(sha256(bytes))).toBe(createHash("sha256").update(bytes).digest("base64"));
    }
  });

  it("signs like everybody else, with short and long keys", () => {
    for (const length of [1, 63, 64, 65, 200]) {
      const key = Uint8Array.from({ length }, (_, n) => (n * 31) & 255);
      expect(toBase64(hmac(key, text("get\ndbs\n\nünï\n\n")))).toBe(createHmac("sha256", key).update("get\ndbs\n\nünï\n\n").digest("base64"));
    }
  });
});
