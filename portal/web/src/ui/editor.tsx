// A text editor, loaded when the first one is shown. It lives in a shadow root: there it may bring its own style sheet
// without the page allowing inline styles.

import { useEffect, useRef, useState } from "preact/hooks";
import type { EditorHandle, EditorOptions } from "./codemirror";
import { isDark } from "../state/prefs";

export type { EditorHandle };

type Props = EditorOptions & {
  value: string;
  /** Given once the editor is there. */
  onReady?: (handle: EditorHandle) => void;
};

export function Editor({ value, onReady, ...options }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<EditorHandle | null>(null);
  const latest = useRef(options);
  latest.current = options;
  // What was typed comes back as `value`, perhaps after more was typed. Taking that for news would undo the typing, which
  // would come back in turn, for ever.
  const echoes = useRef<string[]>([]);
  const [loading, setLoading] = useState(true);

  useEffect(() => {
    let gone = false;
    void import("./codemirror").then(({ createEditor }) => {
      if (gone || !host.current) return;
      const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
      handle.current = createEditor(root, value, {
        ...options,
        onChange: (text) => {
          echoes.current.push(text);
          latest.current.onChange?.(text);
        },
        onRun: () => latest.current.onRun?.(),
        onSave: () => latest.current.onSave?.(),
        onCancel: () => latest.current.onCancel?.() ?? false,
        paths: () => latest.current.paths?.() ?? [],
      });
      handle.current.setDark(isDark.value);
      setLoading(false);
      onReady?.(handle.current);
    });
    return () => {
      gone = true;
      handle.current?.destroy();
      handle.current = null;
    };
  }, []);

  useEffect(() => {
    const echo = echoes.current.lastIndexOf(value);
    if (echo >= 0) {
      echoes.current.splice(0, echo + 1);
      return;
    }
    echoes.current = [];
    handle.current?.setText(value);
    // Setting it is no news to whoever gave it.
    echoes.current = [];
  }, [value]);
  useEffect(() => handle.current?.setReadOnly(options.readOnly ?? false), [options.readOnly]);
  useEffect(() => handle.current?.setDark(isDark.value), [isDark.value]);

  return <div ref={host} class={loading ? "editor loading" : "editor"} />;
}
