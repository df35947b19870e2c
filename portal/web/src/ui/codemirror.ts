// CodeMirror, set up for JSON and for the query language. Everything that draws in it is in this file.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, StreamLanguage, bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, linter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { OPERATORS, STAGES } from "../lib/mongo";
import { FUNCTIONS, KEYWORDS, propertyOf } from "../lib/sql";

export interface EditorOptions {
  language: "json" | "sql" | "mongo";
  /** What it is for, for those who do not see it. */
  label: string;
  readOnly?: boolean;
  hint?: string;
  onChange?: (text: string) => void;
  onRun?: () => void;
  onSave?: () => void;
  /** True if there was something to cancel. */
  onCancel?: () => boolean;
  /** Property paths to complete, like `/address/city`. */
  paths?: () => string[];
}

export interface EditorHandle {
  text(): string;
  setText(text: string): void;
  /** The selection, or nothing. */
  selection(): string;
  cursor(): number;
  setReadOnly(readOnly: boolean): void;
  setDark(dark: boolean): void;
  /** Underlines what a refusal points to. */
  mark(problem: { from: number; to: number; message: string } | null): void;
  focus(): void;
  destroy(): void;
}

const keywords = new Set(KEYWORDS);
const functions = new Set(FUNCTIONS);

const sql = StreamLanguage.define<null>({
  name: "cosmos-sql",
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^--.*/)) return "comment";
    if (stream.match(/^"(?:\\.|[^"\\])*"?/) || stream.match(/^'(?:\\.|[^'\\])*'?/)) return "string";
    if (stream.match(/^@\w+/)) return "special";
    if (stream.match(/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
    if (stream.match(/^\.\s*[A-Za-z_]\w*/)) return "propertyName";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) {
      const upper = word[0].toUpperCase();
      if (functions.has(upper) && stream.match(/^\s*\(/, false)) return "function";
      if (keywords.has(upper)) return /^(TRUE|FALSE|NULL|UNDEFINED)$/.test(upper) ? "atom" : "keyword";
      return "variableName";
    }
    stream.next();
    return "operator";
  },
  tokenTable: { special: tags.special(tags.variableName), function: tags.function(tags.variableName) },
  languageData: { commentTokens: { line: "--" }, closeBrackets: { brackets: ["(", "[", "{", '"', "'"] } },
});

function complete(paths: () => string[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const property = context.matchBefore(/\b[A-Za-z_]\w*((\.\w*)+)$/);
    if (property) {
      const dot = property.text.lastIndexOf(".");
      const above = property.text.slice(property.text.indexOf("."), dot);
      const below = paths()
        .map(propertyOf)
        .filter((path) => path.startsWith(`${above}.`))
        .map((path) => /^\.\w+/.exec(path.slice(above.length))?.[0].slice(1))
        .filter((name): name is string => name !== undefined);
      return { from: property.from + dot + 1, options: [...new Set(below)].map((label) => ({ label, type: "property" })) };
    }
    const word = context.matchBefore(/\w+$/);
    if (!word && !context.explicit) return null;
    return {
      from: word?.from ?? context.pos,
      options: [
        ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
        ...FUNCTIONS.map((label) => ({ label, type: "function", apply: `${label}(` })),
      ],
    };
  };
}

/** Names inside quotes: operators, stages, and dotted paths of properties. */
function completeNames(paths: () => string[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const name = context.matchBefore(/"[$\w.]*$/);
    if (!name) return null;
    const fields = paths().map((path) => path.slice(1).replaceAll("/", "."));
    return { from: name.from + 1, options: [...fields.map((label) => ({ label, type: "property" })), ...[...STAGES, ...OPERATORS].map((label) => ({ label, type: "keyword" }))] };
  };
}

const colours = (dark: boolean): Extension => {
  const c = dark
    ? { key: "#7cc7ff", text: "#8fd6a5", number: "#f0b072", word: "#d6a3ff", call: "#6fd9cf", faint: "#8a95a3", atom: "#f59a9a" }
    : { key: "#0b5ea8", text: "#1d6b38", number: "#9a4a00", word: "#7a2fb5", call: "#0b6b63", faint: "#66707c", atom: "#b02a37" };
  return [
    EditorView.theme(
      {
        "&": { height: "100%", fontSize: "13px", color: "var(--text)", backgroundColor: "var(--field)" },
        ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.550" },
        ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
        ".cm-cursor": { borderLeftColor: "var(--text)" },
        ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none" },
        ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
        "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--select) !important" },
        "&.cm-focused": { outline: "none" },
        ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line)", borderRadius: "6px", color: "var(--text)" },
        ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
        ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
        ".cm-placeholder": { color: "var(--faint)" },
        ".cm-matchingBracket": { backgroundColor: "var(--select) !important", outline: "none" },
        ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "none", color: "var(--faint)" },
      },
      { dark },
    ),
    syntaxHighlighting(
      HighlightStyle.define([
        { tag: [tags.propertyName], color: c.key },
        { tag: [tags.string], color: c.text },
        { tag: [tags.number], color: c.number },
        { tag: [tags.keyword], color: c.word, fontWeight: "600" },
        { tag: [tags.function(tags.variableName)], color: c.call },
        { tag: [tags.bool, tags.null, tags.atom, tags.special(tags.variableName)], color: c.atom },
        { tag: [tags.comment], color: c.faint, fontStyle: "italic" },
      ]),
    ),
  ];
};

export function createEditor(root: ShadowRoot, text: string, options: EditorOptions): EditorHandle {
  const theme = new Compartment();
  const lock = new Compartment();
  const locked = (readOnly: boolean): Extension => [EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)];
  const keys = Prec.highest(
    keymap.of([
      { key: "Shift-Enter", run: () => (options.onRun?.(), options.language !== "json") },
      { key: "F5", run: () => (options.onRun?.(), options.language !== "json") },
      { key: "Mod-s", run: () => (options.onSave?.(), true) },
      { key: "Escape", run: () => options.onCancel?.() ?? false },
    ]),
  );
  const language: Extension =
    options.language === "json"
      ? [json(), linter(jsonParseLinter()), lintGutter(), foldGutter()]
      : options.language === "mongo"
      ? [json(), linter((view) => (view.state.doc.toString().trim() === "" ? [] : jsonParseLinter()(view))), autocompletion({ override: [completeNames(options.paths ?? (() => []))], icons: false })]
      : [sql, autocompletion({ override: [complete(options.paths ?? (() => []))], icons: false })];
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keys,
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("  "),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        options.hint ? placeholder(options.hint) : [],
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, indentWithTab]),
        language,
        theme.of(colours(false)),
        lock.of(locked(options.readOnly ?? false)),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.onChange?.(update.state.doc.toString());
        }),
      ],
    }),
  });
  const mark = (problem: { from: number; to: number; message: string } | null): void => {
    const length = view.state.doc.length;
    const diagnostics: Diagnostic[] = problem
      ? [{ from: Math.min(problem.from, length), to: Math.min(Math.max(problem.to, problem.from + 1), length), severity: "error", message: problem.message }]
      : [];
    view.dispatch(setDiagnostics(view.state, diagnostics));
  };
  return {
    text: () => view.state.doc.toString(),
    setText: (value) => {
      if (value !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    },
    selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
    cursor: () => view.state.selection.main.head,
    setReadOnly: (readOnly) => view.dispatch({ effects: lock.reconfigure(locked(readOnly)) }),
    setDark: (dark) => view.dispatch({ effects: theme.reconfigure(colours(dark)) }),
    mark,
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
