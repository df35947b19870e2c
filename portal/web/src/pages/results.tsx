// Rows that a query gave: as a table, as text, as a file.

import { useMemo, useState } from "preact/hooks";
import { columnsOf, valueIn } from "../lib/csv";
import type { Json } from "../lib/life";
import { CopyButton, Dialog } from "../ui/controls";
import { Editor } from "../ui/editor";
import { type Column, Grid } from "../ui/grid";
import { Value, widthOf } from "../ui/value";

/** `linkOf` tells where a row can be edited. */
export function TableView({ rows, linkOf }: { rows: Json[]; linkOf: (row: number) => string | null }) {
  const columns = useMemo(() => columnsOf(rows.slice(0, 1000)).filter((each) => !["_rid", "_self", "_attachments", "_etag"].includes(each)), [rows]);
  const indexed = useMemo(() => rows.map((row, n) => ({ row, n })), [rows]);
  const grid = columns.map((column): Column<{ row: Json; n: number }> => ({
    id: column,
    title: column,
    least: widthOf(rows.slice(0, 20).map((row) => valueIn(row, column))),
    share: 1,
    sortable: false,
    render: ({ row }) => <Value value={valueIn(row, column)} />,
  }));
  const [open, setOpen] = useState<{ row: Json; n: number } | null>(null);
  const link = open && linkOf(open.n);
  return (
    <>
      <Grid label="Rows" rows={indexed} columns={grid} rowKey={({ n }) => String(n)} selected={NONE} current={null} marked={NONE} onSelect={() => undefined} onOpen={setOpen} onNearEnd={NOTHING} sort={null} onSort={NOTHING} selectable={false} footer={null} />
      {open && (
        <Dialog title={`Row ${open.n + 1}`} onClose={() => setOpen(null)} wide>
          <div class="code"><pre tabIndex={0}>{JSON.stringify(open.row, null, 2)}</pre><CopyButton text={JSON.stringify(open.row, null, 2)} /></div>
          {link && <div class="row end"><a class="button primary" href={link}>Open the item</a></div>}
        </Dialog>
      )}
    </>
  );
}

const NONE: ReadonlySet<string> = new Set();
const NOTHING = (): void => undefined;

/** The most rows drawn as text at once; all of them can be downloaded. */
const JSON_ROWS_MAX = 1000;

export function JsonView({ rows }: { rows: Json[] }) {
  const text = useMemo(() => JSON.stringify(rows.slice(0, JSON_ROWS_MAX), null, 2), [rows]);
  return <div class="framed fill"><Editor language="json" label="Rows as JSON" value={text} readOnly /></div>;
}

export function download(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
