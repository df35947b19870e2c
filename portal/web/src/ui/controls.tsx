// Buttons, fields and small notices.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { errorDetail } from "../state/toasts";
import { Icon, type IconName } from "./icons";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  kind?: "primary" | "plain" | "quiet" | "danger";
  onClick?: (event: MouseEvent) => void;
  disabled?: boolean;
  /** The name, for a button without words, and the tip for all. */
  label?: string;
  keys?: string;
  submit?: boolean;
  busy?: boolean;
  pressed?: boolean;
}

export function Button({ children, icon, kind = "plain", label, keys, submit, busy, pressed, ...rest }: ButtonProps) {
  const tip = [label, keys && `(${keys})`].filter(Boolean).join(" ");
  const bare = children === undefined;
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind}${bare ? " bare" : ""}${busy ? " busy" : ""}`}
      title={tip || undefined}
      aria-label={bare ? label : undefined}
      aria-pressed={pressed}
      aria-busy={busy}
      {...rest}
      disabled={rest.disabled || busy}
    >
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}

export function Field({ label, hint, error, children }: {
  label: string;
  hint?: ComponentChildren;
  error?: string | null | undefined;
  children: (props: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ComponentChildren;
}) {
  const id = useId();
  const noteId = `${id}-note`;
  const note = error ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": note ? noteId : undefined, "aria-invalid": error ? true : undefined })}
      {note && <div id={noteId} class={error ? "note bad" : "note"}>{note}</div>}
    </div>
  );
}

export function Notice({ tone = "info", title, children, action }: {
  tone?: "info" | "good" | "warn" | "bad";
  title?: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : undefined}>
      <Icon name={tone === "good" ? "check" : tone === "info" ? "info" : "warning"} />
      <div class="grow">
        {title && <strong>{title}</strong>}
        <div>{children}</div>
      </div>
      {action}
    </div>
  );
}

/** An error with what support asks for. */
export function Failure({ error, title }: { error: unknown; title?: string }) {
  const message = error instanceof Error ? error.message : String(error);
  const detail = errorDetail(error);
  return (
    <Notice tone="bad" {...(title === undefined ? {} : { title })}>
      <span class="prewrap">{message}</span>
      {detail && <div class="faint mono small">{detail}</div>}
    </Notice>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <>
      <Button kind="quiet" icon={done ? "check" : "copy"} label={done ? "Copied" : label} onClick={() => void copy()} />
      <span class="visually-hidden" role="status">{done ? "Copied" : ""}</span>
    </>
  );
}

/** The clipboard needs HTTPS or localhost; elsewhere the old way has to do. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Empty({ title, children, action }: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {action && <div class="row center">{action}</div>}
    </div>
  );
}

export function Dialog({ title, children, onClose, wide }: { title: string; children: ComponentChildren; onClose: () => void; wide?: boolean }) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === box.current && onClose()}
    >
      <div class="dialog-body">
        <header class="row">
          <h2 id={id} class="grow">{title}</h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Tabs by links: each has its own address. */
export function LinkTabs({ label, items }: { label: string; items: { href: string; text: string; current: boolean }[] }) {
  const box = useRef<HTMLElement>(null);
  const current = items.find((item) => item.current)?.href;
  // On a small screen the current one may be out of sight.
  useEffect(() => box.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [current]);
  return (
    <nav class="tabs" aria-label={label} ref={box}>
      {items.map((item) => (
        <a key={item.href} href={item.href} aria-current={item.current ? "page" : undefined}>{item.text}</a>
      ))}
    </nav>
  );
}

/** Tabs that show another side of what is there. */
export function Segmented<T extends string>({ label, options, value, onChange }: {
  label: string;
  options: { value: T; text: string }[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  );
}

export const inputValue = (event: { currentTarget: { value: string } }): string => event.currentTarget.value;
