// What a setting would do to the documents that are there, before it is set: numbers, a picture, and then the button.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Amount, Forecast } from "../api/admin";
import type { ContainerName } from "../api/cosmos";
import { brief, bytes, count, percent, plural } from "../lib/format";
import { readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button, Dialog, Failure, Field, Notice, inputValue } from "../ui/controls";
import { useFresh, useLoad } from "../ui/load";

interface Proposal {
  name: ContainerName;
  load: () => Promise<Forecast>;
  /** Makes the change. */
  save: () => Promise<unknown>;
  /** What is so from then on, and what to say if it failed. */
  saved: string;
  notSaved: string;
  saveLabel: string;
  onSaved: () => void;
  discardLabel: string;
  onDiscard: (() => void) | null;
  children: (it: Forecast) => ComponentChildren;
}

/** What a proposal would do; saving is down here, below what it does. */
export function Preview(props: Proposal) {
  const preview = useLoad(props.load, []);
  useFresh(preview);
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const it = preview.value;
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      await props.save();
      toast({ tone: "good", text: props.saved });
      props.onSaved();
    } catch (error) {
      failed(props.notSaved, error);
      setBusy(false);
      setAsking(false);
    }
  };
  if (!it) return preview.error ? <Failure error={preview.error} title="There is no preview" /> : <div class="preview loading"><span class="faint">Looking at what it would do…</span></div>;
  const share = shareAtOnce(it);
  const mustConfirm = share > CONFIRM_SHARE;
  return (
    <div class="preview stack" role="region" aria-label="Preview">
      <Headline it={it} share={share} />
      <Histogram it={it} />
      {props.children(it)}
      {!readOnly.value && (
        <div class="row end">
          {props.onDiscard && <Button onClick={props.onDiscard}>{props.discardLabel}</Button>}
          <Button kind={mustConfirm ? "danger" : "primary"} icon="save" busy={busy} onClick={() => (mustConfirm ? setAsking(true) : void save())}>
            {mustConfirm ? `Save and expire ${brief(it.expiresAtOnce.documents)} at once…` : props.saveLabel}
          </Button>
        </div>
      )}
      {asking && <Confirm name={props.name} it={it} share={share} busy={busy} onClose={() => setAsking(false)} onConfirm={() => void save()} />}
    </div>
  );
}

/** How many documents speak for themselves. */
export function Owners({ it, children }: { it: Forecast; children?: ComponentChildren }) {
  return (
    <div class="row wrap small">
      <span><b data-testid="own-count">{count(it.ownTtl.documents)}</b> with their own ttl</span>
      <span><b data-testid="pinned-count">{count(it.pinned.documents)}</b> pinned (ttl −1)</span>
      <span><b>{count(it.neverExpires.documents)}</b> never expire</span>
      <span class="grow" />
      {children}
    </div>
  );
}

/** A change that would expire more than this share at once has to be typed in. */
const CONFIRM_SHARE = 0.1;

const shareAtOnce = (it: Forecast): number => (it.live.documents === 0 ? 0 : it.expiresAtOnce.documents / it.live.documents);

function Headline({ it, share }: { it: Forecast; share: number }) {
  const gone = it.expiresAtOnce;
  const later = it.expiresWithinHour.documents + it.expiresWithinDay.documents + it.expiresWithin30Days.documents + it.expiresLater.documents;
  if (gone.documents === 0) {
    return (
      <Notice tone="good" title="Nothing expires at once">
        {later === 0 ? `None of the ${plural(it.live.documents, "document")} will expire under this setting.` : `${plural(later, "document")} of ${count(it.live.documents)} will expire over time.`}
      </Notice>
    );
  }
  return (
    <Notice tone={share > CONFIRM_SHARE ? "bad" : "warn"} title={`${plural(gone.documents, "document")} (${bytes(gone.bytes)}) would be gone at once`}>
      That is {percent(share)} of the container, and it is final: they do not come back when the setting is changed again.
    </Notice>
  );
}

const BUCKETS: [key: "expiresAtOnce" | "expiresWithinHour" | "expiresWithinDay" | "expiresWithin30Days" | "expiresLater" | "neverExpires", label: string, tone: string][] = [
  ["expiresAtOnce", "At once", "now"],
  ["expiresWithinHour", "Within 1 hour", "hour"],
  ["expiresWithinDay", "Within 1 day", "day"],
  ["expiresWithin30Days", "Within 30 days", "month"],
  ["expiresLater", "Later", "later"],
  ["neverExpires", "Never", "never"],
];

/** Bars by logarithm: one document must be visible beside a million. */
function Histogram({ it }: { it: Forecast }) {
  const most = Math.max(1, ...BUCKETS.map(([key]) => it[key].documents));
  const height = (amount: Amount): number => (amount.documents === 0 ? 0 : 8 + 92 * (Math.log1p(amount.documents) / Math.log1p(most)));
  return (
    <table class="histogram">
      <caption class="visually-hidden">When the documents that are there would expire</caption>
      <tbody>
        {BUCKETS.map(([key, label, tone]) => (
          <tr key={key} class={tone} data-bucket={key}>
            <th scope="row">{label}</th>
            <td class="bar-cell" aria-hidden="true"><span class="bar-fill" style={{ "--size": `${height(it[key])}%` }} /></td>
            <td class="num">{count(it[key].documents)}</td>
            <td class="num faint">{bytes(it[key].bytes)}</td>
            <td class="num faint">{it.live.documents === 0 ? "–" : percent(it[key].documents / it.live.documents)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Confirm({ name, it, share, busy, onConfirm, onClose }: { name: ContainerName; it: Forecast; share: number; busy: boolean; onConfirm: () => void; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog title="This deletes data" onClose={onClose}>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), typed === name.coll && onConfirm())}>
        <p><b>{plural(it.expiresAtOnce.documents, "document")}</b> of <b>{name.coll}</b> ({percent(share)}, {bytes(it.expiresAtOnce.bytes)}) will be gone the moment you save. Changing the setting back does not bring them back.</p>
        <Field label={`Type ${name.coll} to confirm`}>
          {(props) => <input {...props} class="input mono" autofocus autocomplete="off" value={typed} onInput={(event) => setTyped(inputValue(event))} />}
        </Field>
        <div class="row end"><Button onClick={onClose}>Keep everything</Button><Button kind="danger" submit busy={busy} disabled={typed !== name.coll}>Save and let them expire</Button></div>
      </form>
    </Dialog>
  );
}
