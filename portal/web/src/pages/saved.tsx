// Saved queries, kept in this browser.

import { useState } from "preact/hooks";
import { plural } from "../lib/format";
import { statements } from "../lib/sql";
import { changeTab, saved, type QueryTab } from "../state/tabs";
import { toast } from "../state/toasts";
import { Button, Dialog, Field, inputValue } from "../ui/controls";

/** Filters and pipelines are JSON; SQL begins with a word. */
export const isMongoText = (text: string): boolean => /^\s*[{[]/.test(text);

/** `fits` tells which of them are for this kind of container. */
export function SavedMenu({ fits, onChoose }: { fits: (text: string) => boolean; onChoose: (text: string) => void }) {
  const fitting = saved.value.filter((each) => fits(each.text));
  if (fitting.length === 0) return null;
  return (
    <select class="input" aria-label="Open a saved query" value="" onChange={(event) => {
      const found = saved.value.find((each) => each.name === inputValue(event));
      if (found) onChoose(found.text);
    }}>
      <option value="">Saved queries…</option>
      {fitting.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}
    </select>
  );
}

export function Save({ tab, onClose }: { tab: QueryTab; onClose: () => void }) {
  const [name, setName] = useState(tab.title);
  const save = (): void => {
    saved.value = [...saved.value.filter((each) => each.name !== name), { name, text: tab.text }];
    changeTab(tab.id, { title: name });
    toast({ tone: "good", text: `Saved “${name}” in this browser` });
    onClose();
  };
  return (
    <Dialog title="Save the query" onClose={onClose}>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), save())}>
        <Field label="Name" hint={saved.value.some((each) => each.name === name) ? "Replaces the one with this name." : "Kept in this browser."}>
          {(props) => <input {...props} class="input" required autofocus value={name} onInput={(event) => setName(inputValue(event))} />}
        </Field>
        {saved.value.length > 0 && (
          <ul class="saved-list">
            {saved.value.map((each) => (
              <li key={each.name} class="row"><span class="grow ellipsis">{each.name} <span class="faint small">{plural(statements(each.text).length, "statement")}</span></span><Button kind="quiet" icon="trash" label={`Forget ${each.name}`} onClick={() => (saved.value = saved.value.filter((other) => other !== each))} /></li>
            ))}
          </ul>
        )}
        <div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="primary" submit>Save</Button></div>
      </form>
    </Dialog>
  );
}
