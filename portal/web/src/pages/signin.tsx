// Signing in, with an account key or a resource token.

import { useState } from "preact/hooks";
import { type ServerInfo } from "../api/admin";
import { base } from "../api/http";
import { endReason, readToken, startSession } from "../state/session";
import { Button, Failure, Field, Notice, Segmented, inputValue } from "../ui/controls";
import { Mark } from "../ui/icons";

/** The key of every Cosmos emulator. It is public, and protects nothing. */
const EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

type Way = "key" | "token";

export function SignIn() {
  const [way, setWay] = useState<Way>("key");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);

  const enter = async (secret: string): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      if (way === "key") await withKey(secret.trim());
      else withToken(secret);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <main class="signin">
      <form
        class="card signin-card"
        onSubmit={(event) => {
          event.preventDefault();
          void enter(text);
        }}
      >
        <div class="signin-head">
          <Mark size={44} />
          <h1>Mayfly</h1>
          <p class="faint">Documents with exact time to live, at <span class="mono">{location.host}</span></p>
        </div>
        {endReason.value && <Notice tone="warn" title="You were signed out">{endReason.value}</Notice>}
        <Segmented
          label="How to sign in"
          options={[{ value: "key", text: "Account key" }, { value: "token", text: "Resource token" }]}
          value={way}
          onChange={(value) => (setWay(value), setText(""), setProblem(null))}
        />
        <Field label={way === "key" ? "Account key" : "Resource token"} hint={way === "key" ? "A read-only key gives a read-only portal." : "It leads to one container."}>
          {(props) => (
            <input {...props} class="input mono" type="password" autocomplete="off" spellcheck={false} value={text} onInput={(event) => setText(inputValue(event))} required />
          )}
        </Field>
        {problem !== null && <Failure error={problem} />}
        <Button kind="primary" submit busy={busy}>Sign in</Button>
        {way === "key" && (
          <Button kind="quiet" disabled={busy} onClick={() => void enter(EMULATOR_KEY)}>Use the well-known emulator key</Button>
        )}
        <p class="small faint">What you enter stays in this tab and is forgotten when it is closed.</p>
      </form>
    </main>
  );
}

async function withKey(key: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(`${base}_mayfly/server`, { headers: { authorization: `Bearer ${key}` }, cache: "no-store" });
  } catch {
    throw new Error("The server does not answer. Is it running?");
  }
  if (response.status === 401) throw new Error("This is not a key of this account. Keys are printed by the server when it starts.");
  if (!response.ok) throw new Error(`The server answered with status ${response.status}.`);
  const info = (await response.json()) as ServerInfo;
  startSession({ kind: "key", key, readOnly: info.access === "readOnly" });
}

function withToken(text: string): void {
  const read = readToken(text);
  if (typeof read === "string") throw new Error(read);
  if (read.kind === "token" && read.expiresAt * 1000 <= Date.now()) throw new Error("This token has expired. Ask for a new one.");
  startSession(read);
}
