// The life of an open item: how much of it is left, which rule says so, and the sum.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { MAX_TTL, exactDuration, parseDuration } from "../lib/duration";
import { utc } from "../lib/format";
import { now } from "../state/clock";
import { Button, Dialog, Field, inputValue } from "../ui/controls";

interface Life {
  /** The second it is gone; null is never. */
  deadline: number | null;
  /** What to say without a deadline. */
  word: string;
  /** How long the whole life is, where that is known. */
  seconds: number | null;
  tone: string;
  words: string;
  sum: ComponentChildren;
  children?: ComponentChildren;
}

export function LifeCard({ deadline, word, seconds, tone, words, sum, children }: Life) {
  const left = deadline === null ? null : deadline - now.value;
  const share = left !== null && seconds ? Math.max(0, Math.min(1, left / seconds)) : null;
  return (
    <section class={`life-card ${tone}`} aria-label="Life of the item">
      <div class="life-line">
        <strong class="life-big">{left === null ? word : left <= 0 ? "Gone" : `${exactDuration(Math.ceil(left))} left`}</strong>
        {deadline !== null && <span class="faint small">gone at {utc(deadline)}</span>}
      </div>
      {share !== null && <progress class="life-bar" max={1} value={share} aria-label="Life that is left" />}
      <p class="small">{words}</p>
      {sum && <p class="small mono sum">{sum}</p>}
      {children}
    </section>
  );
}

export function ExpireIn({ onChoose, onClose }: { onChoose: (seconds: number) => void; onClose: () => void }) {
  const [text, setText] = useState("1 h");
  const seconds = parseDuration(text);
  const valid = seconds !== null && seconds >= 1 && seconds <= MAX_TTL;
  return (
    <Dialog title="Expire in…" onClose={onClose}>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), valid && onChoose(seconds))}>
        <Field label="How long from now" error={valid ? null : "Give seconds, or something like 90 min or 7 d."} hint={valid ? `ttl ${seconds}: gone at ${utc(now.value + seconds)}` : undefined}>
          {(props) => <input {...props} class="input mono" autofocus value={text} onInput={(event) => setText(inputValue(event))} />}
        </Field>
        <div class="row wrap">{["10 min", "1 h", "1 d", "7 d", "30 d"].map((each) => <Button key={each} onClick={() => setText(each)}>{each}</Button>)}</div>
        <div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="primary" submit disabled={!valid}>Set it</Button></div>
      </form>
    </Dialog>
  );
}
