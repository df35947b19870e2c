// Dropping an index of a collection, after saying what is lost with it.

import { useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { dropIndex } from "../api/mongo";
import { failed, toast } from "../state/toasts";
import { Button, Dialog, Notice } from "../ui/controls";

export function DropIndex({ name, index, loss, onClose, onDone }: { name: ContainerName; index: string; loss: string; onClose: () => void; onDone: () => void }) {
  const [busy, setBusy] = useState(false);
  const drop = async (): Promise<void> => {
    setBusy(true);
    try {
      await dropIndex(name, index);
      toast({ tone: "good", text: `Dropped ${index}` });
      onDone();
    } catch (error) {
      failed(`${index} was not dropped`, error);
      onClose();
    }
  };
  return (
    <Dialog title={`Drop ${index}`} onClose={onClose}>
      <Notice>{loss}</Notice>
      <div class="row end"><Button onClick={onClose}>Keep it</Button><Button kind="danger" busy={busy} onClick={() => void drop()}>Drop the index</Button></div>
    </Dialog>
  );
}
