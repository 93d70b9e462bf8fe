// The scenarios of scenarios.ts for the profile 23ai, on our library and on SoftHSM2.
import { describeRelease } from './release.ts';

describeRelease('23ai');
