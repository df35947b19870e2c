// The frame: bar, tree, and the page that the address names.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { NewContainer, NewDatabase } from "./pages/create";
import { ContainerPage } from "./pages/container";
import { Home } from "./pages/home";
import { Metrics } from "./pages/metrics";
import { SignIn } from "./pages/signin";
import { Shortcuts, useShortcuts } from "./pages/shortcuts";
import { Tree } from "./pages/tree";
import { shortDuration } from "./lib/duration";
import { plural, utc } from "./lib/format";
import { clock, now, standsStill } from "./state/clock";
import { catalogError } from "./state/catalog";
import { drafted } from "./state/drafts";
import { isDark, theme } from "./state/prefs";
import { go, href, route, withParams } from "./state/route";
import { credential, endSession, isAdministrator, readOnly } from "./state/session";
import { Button, Dialog, Empty } from "./ui/controls";
import { Icon, Mark } from "./ui/icons";
import { Toasts } from "./ui/toasts";

const drawer = signal(false);

export function App() {
  useShortcuts();
  // Going somewhere closes the drawer of a small screen.
  useEffect(() => void (drawer.value = false), [route.value]);
  if (!credential.value) {
    return (
      <>
        <SignIn />
        <Toasts />
      </>
    );
  }
  return (
    <div class={drawer.value ? "frame drawer-open" : "frame"}>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Skip to content</a>
      <Bar />
      <aside class="side" aria-label="Databases">
        <Tree />
      </aside>
      <div class="scrim" onClick={() => (drawer.value = false)} />
      <main id="main" tabIndex={-1}>
        {catalogError.value && <div class="offline" role="alert"><Icon name="warning" /> {catalogError.value.message}</div>}
        <Page />
      </main>
      <Dialogs />
      <Toasts />
    </div>
  );
}

function Bar() {
  const who = credential.value;
  const state = clock.value;
  return (
    <header class="bar">
      <span class="only-small">
        <Button kind="quiet" icon="menu" label="Databases" onClick={() => (drawer.value = !drawer.value)} />
      </span>
      <a class="brand" href="#/"><Mark /> <span>Mayfly</span></a>
      <span class="bar-host faint">{location.host}</span>
      <span class="grow" />
      {who?.kind === "token" && <span class="badge warn" title="This token ends then">Token · {shortDuration(Math.max(0, who.expiresAt - Date.now() / 1000))} left</span>}
      {readOnly.value && <span class="badge warn">Read-only</span>}
      <span class={state?.frozen || standsStill(state) ? "server-clock frozen" : "server-clock"} title="The server's clock">
        <Icon name="clock" /> <time>{utc(now.value)}</time>{state?.frozen ? " · frozen" : standsStill(state) && " · stands still"}
      </span>
      <Button
        kind="quiet"
        icon={isDark.value ? "sun" : "moon"}
        label={isDark.value ? "Light colours" : "Dark colours"}
        onClick={() => (theme.value = isDark.value ? "light" : "dark")}
      />
      <SignOut />
    </header>
  );
}

/** Drafts end with the session, so it asks if there are any. */
function SignOut() {
  const [asking, setAsking] = useState(false);
  const number = drafted.value.size;
  return (
    <>
      <Button kind="quiet" icon="out" label="Sign out" onClick={() => (number > 0 ? setAsking(true) : endSession(null))} />
      {asking && (
        <Dialog title={`${plural(number, "draft")} not saved`} onClose={() => setAsking(false)}>
          <p>Drafts are kept for this session only. Signing out discards {number === 1 ? "it" : "them"}.</p>
          <div class="row end wrap">
            <Button onClick={() => setAsking(false)}>Stay</Button>
            <Button kind="danger" onClick={() => endSession(null)}>Discard and sign out</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Page() {
  const { parts } = route.value;
  const [first, db, coll, page, ...rest] = parts;
  if (first === "c" && db !== undefined && coll !== undefined) {
    return <ContainerPage key={`${db}/${coll}`} name={{ db, coll }} page={page ?? "items"} rest={rest} />;
  }
  if (first === "metrics" && isAdministrator.value) return <Metrics />;
  if (first === undefined) return <Home />;
  return (
    <Empty title="There is nothing here" action={<a class="button primary" href="#/">Go home</a>}>
      The address may be from another server or an older version.
    </Empty>
  );
}

function Dialogs() {
  const name = route.value.params.get("dialog");
  const close = (): void => go(withParams({ dialog: null, db: null }), true);
  if (name === "shortcuts") return <Shortcuts onClose={close} />;
  if (readOnly.value || !isAdministrator.value) return null;
  if (name === "new-container") return <NewContainer db={route.value.params.get("db")} onClose={close} onDone={(db, coll) => go(href(["c", db, coll, "items"]))} />;
  if (name === "new-database") return <NewDatabase onClose={close} />;
  return null;
}
