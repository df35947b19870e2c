// The keyboard, as in Azure's Data Explorer.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { go, href, inContainer, route, withParams } from "../state/route";
import { isAdministrator, readOnly } from "../state/session";
import { closeTab, openTab, tabs } from "../state/tabs";
import { Dialog } from "../ui/controls";

/** Pages offer what they can do under these names. */
export type Action = "run" | "cancel" | "save" | "delete" | "filter" | "newItem";
const actions = new Map<Action, () => void>();

export function useAction(name: Action, run: (() => void) | null): void {
  // With the drawing, not after it: what is on the screen answers to its key at once.
  useLayoutEffect(() => {
    if (!run) return;
    actions.set(name, run);
    return () => {
      if (actions.get(name) === run) actions.delete(name);
    };
  });
}

const KEYS: [keys: string, what: string][] = [
  ["Shift + Enter, F5", "Run the query, or what is selected"],
  ["Esc", "Cancel the query"],
  ["Ctrl + S", "Save the item or the query"],
  ["Ctrl + J", "New query"],
  ["Alt + N, then I", "New item"],
  ["Alt + N, then Q", "New query"],
  ["Alt + N, then C", "New container"],
  ["Alt + N, then D", "New database"],
  ["Alt + D", "Delete the selected items"],
  ["Ctrl + Shift + F", "Go to the filter"],
  ["Ctrl + Alt + [ or ]", "Previous or next query tab"],
  ["Ctrl + Alt + W", "Close the query tab"],
  ["?", "This list"],
];

function newQuery(): void {
  const [first, db, coll] = route.value.parts;
  if (first === "c" && db !== undefined && coll !== undefined) go(inContainer(db, coll, `query/${openTab({ db, coll }).id}`));
}

function newSomething(key: string): boolean {
  const may = !readOnly.value && isAdministrator.value;
  if (key === "i") actions.get("newItem")?.();
  else if (key === "q") newQuery();
  else if (key === "c" && may) go(withParams({ dialog: "new-container" }));
  else if (key === "d" && may) go(withParams({ dialog: "new-database" }));
  else return false;
  return true;
}

function moveTab(by: number): void {
  const { parts } = route.value;
  const at = tabs.value.findIndex((tab) => tab.id === parts[4]);
  const next = tabs.value[(at + by + tabs.value.length) % tabs.value.length];
  if (next) go(inContainer(next.db, next.coll, `query/${next.id}`));
}

export function goToTab(next: ReturnType<typeof closeTab>): void {
  const [, db = "", coll = ""] = route.value.parts;
  go(next ? inContainer(next.db, next.coll, `query/${next.id}`) : href(["c", db, coll, "items"]));
}

/** True if the key was ours. */
function handle(event: KeyboardEvent, awaitingNew: boolean): boolean {
  const key = event.key.toLowerCase();
  const ctrl = event.ctrlKey || event.metaKey;
  const typing = event.composedPath().some((each) => each instanceof HTMLElement && (each.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(each.tagName)));
  const onQuery = route.value.parts[3] === "query";
  const run = (name: Action): boolean => {
    const action = actions.get(name);
    action?.();
    return action !== undefined;
  };
  if (awaitingNew && !ctrl) return newSomething(key);
  if ((event.shiftKey && key === "enter") || key === "f5") return run("run");
  if (key === "escape" && !document.querySelector("dialog[open]")) return run("cancel");
  if (ctrl && !event.altKey && !event.shiftKey && key === "s") return run("save");
  if (ctrl && !event.altKey && !event.shiftKey && key === "j") return newQuery(), true;
  if (ctrl && event.shiftKey && key === "f") return run("filter");
  if (ctrl && event.altKey && event.code === "BracketLeft" && onQuery) return moveTab(-1), true;
  if (ctrl && event.altKey && event.code === "BracketRight" && onQuery) return moveTab(1), true;
  if (ctrl && event.altKey && event.code === "KeyW" && onQuery) return goToTab(closeTab(route.value.parts[4] ?? "")), true;
  if (event.altKey && !ctrl && event.code === "KeyD") return run("delete");
  if (key === "?" && !typing) return go(withParams({ dialog: "shortcuts" })), true;
  return false;
}

export function useShortcuts(): void {
  useEffect(() => {
    let newUntil = 0;
    const listen = (event: KeyboardEvent): void => {
      if (event.altKey && !event.ctrlKey && event.code === "KeyN") {
        newUntil = event.timeStamp + 2_000;
        event.preventDefault();
        return;
      }
      const awaitingNew = event.timeStamp < newUntil;
      newUntil = 0;
      if (!event.defaultPrevented && handle(event, awaitingNew)) event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <table class="plain-table">
        <tbody>{KEYS.map(([keys, what]) => <tr key={keys}><td><kbd>{keys}</kbd></td><td>{what}</td></tr>)}</tbody>
      </table>
    </Dialog>
  );
}
