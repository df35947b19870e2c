// The frame of an open item, whatever it is: its name, its text, a way to save, and what to do when somebody else was faster.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { diffLines } from "../lib/diff";
import { readOnly } from "../state/session";
import { Button, CopyButton, Dialog, Empty, Failure, Notice } from "../ui/controls";
import { Editor } from "../ui/editor";
import { useAction } from "./shortcuts";

interface Frame {
  title: string;
  isNew: boolean;
  /** It was deleted or has expired. */
  gone: boolean;
  /** The stored text, for the clipboard; null while there is none. */
  copy: string | null;
  text: string;
  onText: (text: string) => void;
  /** What is wrong with the text, if anything is. */
  wrong: string | null;
  changed: boolean;
  /** Whether something was typed that is not saved. */
  dirty: boolean;
  /** Shows what has become of the item since the draft was begun, if it has changed. */
  stale: (() => void) | null;
  busy: boolean;
  problem: unknown;
  /** What the line at the foot says of a text that is right. */
  note: string;
  onSave: () => void;
  onDiscard: () => void;
  onDelete: () => void;
  onClose: () => void;
  /** Between the name and the text. */
  children?: ComponentChildren;
}

export function ItemFrame(props: Frame) {
  const { title, isNew, wrong, changed } = props;
  const [leaving, setLeaving] = useState(false);
  useAction("save", props.onSave);
  const close = (): void => (props.dirty && !props.gone && !readOnly.value ? setLeaving(true) : props.onClose());
  return (
    <section class="panel" aria-label={isNew ? "New item" : `Item ${title}`}>
      <header class="panel-head">
        <h2 class="grow ellipsis mono">{isNew ? "New item" : title}</h2>
        {props.copy !== null && <CopyButton text={props.copy} label="Copy as JSON" />}
        {props.copy !== null && !readOnly.value && <Button kind="quiet" icon="trash" label="Delete this item" onClick={props.onDelete} />}
        <Button kind="quiet" icon="close" label="Close the item" onClick={close} />
      </header>
      {props.gone ? (
        <Empty title="This item is gone" action={<Button onClick={props.onClose}>Close</Button>}>It was deleted, or its time has come.</Empty>
      ) : (
        <>
          {props.children}
          {props.problem !== null && <Failure error={props.problem} />}
          {props.stale && (
            <Notice tone="warn" title="This item has changed since you began" action={<Button onClick={props.stale}>Compare</Button>}>
              Your draft is of an older version. Saving it overwrites nothing before you have chosen.
            </Notice>
          )}
          <div class="panel-editor">
            {(isNew || props.copy !== null) && <Editor language="json" label="The item as JSON" value={props.text} readOnly={readOnly.value} onChange={props.onText} onSave={props.onSave} />}
          </div>
          <footer class="panel-foot row">
            <span class="grow small faint ellipsis" role="status">{props.dirty && <b class="draft-word">Draft, not saved. </b>}{wrong ?? props.note}</span>
            {!readOnly.value && (
              <>
                {props.dirty && <Button onClick={props.onDiscard}>Discard</Button>}
                <Button kind="primary" icon="save" keys="Ctrl+S" busy={props.busy} disabled={!changed || wrong !== null} onClick={props.onSave}>{isNew ? "Make it" : "Save"}</Button>
              </>
            )}
          </footer>
        </>
      )}
      {leaving && (
        <Dialog title="Your changes are not saved" onClose={() => setLeaving(false)}>
          <p>Keep them as a draft, and they are here when you open {isNew ? "a new item" : "this item"} again in this tab: until you sign out, or the item expires.</p>
          <div class="row end wrap">
            <Button kind="danger" onClick={() => (props.onDiscard(), props.onClose())}>Discard</Button>
            <Button onClick={props.onClose}>Keep draft</Button>
            <Button kind="primary" icon="save" disabled={wrong !== null} onClick={() => (setLeaving(false), props.onSave())}>Save</Button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

/** Both texts, and whose counts is for the person to say. */
export function Conflict({ mine, theirs, words, onTake, onOverwrite, onClose }: { mine: string; theirs: string; words: string; onTake: () => void; onOverwrite: () => void; onClose: () => void }) {
  return (
    <Dialog title="Somebody else changed this item" onClose={onClose} wide>
      <p>{words} Nothing of yours is lost; choose what counts.</p>
      <div class="diff mono" role="table" aria-label="Differences" tabIndex={0}>
        {diffLines(mine, theirs).map((line, n) => (
          <div key={n} role="row" class={`diff-line ${line.kind}`}>
            <span role="cell" class="diff-side">{line.kind === "mine" ? "yours" : line.kind === "theirs" ? "theirs" : ""}</span>
            <span role="cell" class="prewrap">{line.text}</span>
          </div>
        ))}
      </div>
      <div class="row end wrap">
        <Button onClick={onClose}>Keep editing</Button>
        <Button onClick={onTake}>Take theirs</Button>
        <Button kind="danger" onClick={onOverwrite}>Overwrite with yours</Button>
      </div>
    </Dialog>
  );
}
