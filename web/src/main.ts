/** The page begins here: what it was opened for decides the mode. */
import { entry, readDocument, token } from './document/read';
import { startEdit } from './edit/start';
import { startLive } from './live/start';
import { openForPrint, show, showFailure } from './page';
import { report } from './report';
import { startTheme } from './theme/theme';

async function start(): Promise<void> {
  const { mode, element } = entry();
  const theme = startTheme();
  openForPrint();
  try {
    if (mode === 'report' && element) {
      const read = await readDocument(element);
      show(
        read.runs.length > 1 ? 'Comparison' : (read.runs[0]?.label ?? 'Report'),
        theme,
        report(read),
      );
    } else if (mode === 'live' && element) {
      await startLive(token(element), theme);
    } else if (mode === 'edit' && element) {
      await startEdit(token(element), theme);
    } else {
      showFailure(
        'It is filled in by `windtunnel report`, `windtunnel web` or `windtunnel edit`.',
        theme,
      );
    }
  } catch (cause) {
    showFailure(cause instanceof Error ? cause.message : String(cause), theme);
  }
  document.documentElement.dataset.ready = mode;
}

void start();
