// The scenarios of scenarios.ts for the profile 11g, on our library and on SoftHSM2.
import { describeRelease } from './release.ts';

describeRelease('11g');
