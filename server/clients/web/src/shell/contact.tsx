// What the frame does while the service does not answer: it says so on every page, greys what is
// from before, asks, and reads everything again when there is an answer.

import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import { listenForService } from '../api/client.ts';
import { contactLostAt, watchContact } from '../api/contact.ts';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Time } from '../ui/page/time.tsx';

/** How often the page asks while the service answers, and while it does not, in milliseconds. */
const listenEvery = 10_000;
const listenEveryWhenLost = 2_000;

/** When the last answer came; null while the service answers. */
export const useContactLostAt = (): number | null => useSyncExternalStore(watchContact, contactLostAt);

/** Mount it once. */
const useListening = (isLost: boolean): void => {
  const client = useQueryClient();
  const wasLost = useRef(false);
  useEffect(() => {
    if (wasLost.current && !isLost) void client.invalidateQueries();
    wasLost.current = isLost;
    const listen = (): void => {
      if (!document.hidden) void listenForService();
    };
    const timer = setInterval(listen, isLost ? listenEveryWhenLost : listenEvery);
    document.addEventListener('visibilitychange', listen);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', listen);
    };
  }, [client, isLost]);
};

/** The content of the frame, below the notice that it is old. */
export const InContact = ({ children }: { children: ReactNode }) => {
  const lostAt = useContactLostAt();
  useListening(lostAt !== null);
  return (
    <>
      <div role="alert">
        {lostAt !== null && (
          <div className="m-4 lg:mx-8">
            <Notice tone="danger" title="The service does not answer">
              <p>
                Not reached since <Time value={new Date(lostAt).toISOString()} seconds />. What this page shows is from
                before. It is read again when the service answers.
              </p>
              <p className="mt-2">
                <Button onClick={() => void listenForService()}>Try again</Button>
              </p>
            </Notice>
          </div>
        )}
      </div>
      <div className={lostAt === null ? '' : 'grayscale'}>{children}</div>
    </>
  );
};
