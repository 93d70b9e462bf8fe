// The content security policy refuses code that is made at run time, which the schemas would else
// try. Imported before them.

import { z } from '@hono/zod-openapi';

z.config({ jitless: true });
