// Where toasts appear.

import { dismiss, toasts } from "../state/toasts";
import { Button } from "./controls";
import { Icon } from "./icons";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.tone}`}>
          <Icon name={toast.tone === "bad" ? "warning" : toast.tone === "good" ? "check" : "info"} />
          <div class="grow">
            <div class="prewrap">{toast.text}</div>
            {toast.detail && <div class="small mono faint">{toast.detail}</div>}
          </div>
          {toast.action && <Button kind="plain" onClick={toast.action.run}>{toast.action.label}</Button>}
          <Button kind="quiet" icon="close" label="Dismiss" onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
