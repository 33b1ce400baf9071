"""Input files of atoms, valid and invalid."""

from __future__ import annotations

NITROGEN = """N atom, 2p3 average
$contrl jobtype='energy' $end
$nuc znuc=7.0 nucmdl=3 $end
$bas nsym=3 bastype='wtbs' $end
$wtbs wtbspara=5.976d-2,1.923,5.183,1.442 nbs=23,16,16 start=1,1,1 $end
$econfig nclose=2,0,0 nopen=0,1,1 freeel=3 autogen=.true. $end
$scf maxitr=50 ixtrp=1 thdll=1d-8 thdsl=1d-10 thdss=1d-12 $end
"""


CHROMIUM = """Cr atom, 3d5 4s1
&contrl /
&nuc znuc=24 &end
&bas nsym=5, bastype='wtbs' /
&wtbs wtbspara = 2.345e-02 1.865 5.348 1.407  ! as printed
      nbs = 29, 2*20, 2*16
      start = 1 2*3 2*2 /
&seconfig nclose=3,2,2,0,0 nopen=1,0,0,1,1
          freeel=6 autogen=F nconf=5 /
1 4 1
1.0 3.0 2.0
1 2 3   ! a comment
1, 1, 4
1 0 5
&scf /
"""


LISTED = """He in four functions
$CONTRL JOBTYP="energy" C=137.0 $END
$NUC ZNUC=2 NUCMDL=2 RNUC=1.0D-4 $END
$BAS NSYM=1 BASTYPE='RDIN' $END
4
 0.3
 1.2
 5.0d0

 0.25E+02
$ECONFIG NCLOSE=1 $END
$SCF $END
"""


OPTIMISE = """He, optimised
$contrl jobtype='bsopt' $end
$nuc znuc=2 $end
$bas nsym=1 bastype='wtbs' $end
$wtbs wtbspara=0.09,2.0,4.0,1.2 nbs=18 $end
$newuoa rhobeg=0.2 maxfun=300 iprint=1 $end
$econfig nclose=1 $end
$scf ixtrp=1 $end
"""


WRONG = [  # changes of NITROGEN: old text, new text, line number and text of the error message
    ("$contrl jobtype='energy' $end\n", "", 2, "expected the group $contrl, found '$nuc'"),
    ("$nuc znuc=7.0 nucmdl=3 $end\n", "", 3, "expected the group $nuc, found '$bas'"),
    (NITROGEN[NITROGEN.index("$wtbs") : NITROGEN.index("$econfig")], "", 5, "expected the group $wtbs"),
    (NITROGEN[NITROGEN.index("$scf") :], "", 7, "the file ends without the group $scf"),
    ("N atom, 2p3 average\n", "", 1, "expected a title"),
    ("N atom", "N" * 201, 1, "characters; 200 are allowed"),
    ("autogen=.true. $end", "autogen=.true.", 7, "inside $econfig: the group has no $end"),
    ("thdss=1d-12 $end", "thdss=1d-12", 8, "the group $scf that begins in line 7 has no $end"),
    ("wtbspara=5.976d-2,1.923", "wtbspara=5.976d-2", 5, "wtbspara has 3 values; ngroup=1 needs 4"),
    ("nbs=23,16,16", "nbs=23,16", 5, "nbs has 2 values; nsym=3 needs 3"),
    ("nbs=23,16,16", "nbs=23,16,16,4", 5, "nbs has 4 values; nsym=3 needs 3"),
    ("nclose=2,0,0", "nclose=2,0", 6, "nclose has 2 values; nsym=3 needs 3"),
    ("nopen=0,1,1", "nopen=0,1", 6, "nopen has 2 values; nsym=3 needs 3"),
    ("znuc=7.0", "znuc=7.0,8.0", 3, "znuc has 2 values; it takes one"),
    ("znuc=7.0", "znuc=", 3, "znuc has no value"),
    ("znuc=7.0 ", "", 3, "$nuc lacks znuc"),
    ("ixtrp", "ixtrap", 7, "unknown key 'ixtrap' in $scf; did you mean ixtrp?"),
    ("nsym=3", "nsim=3", 4, "did you mean nsym?"),
    ("maxitr=50", "maxitr=50 maxitr=60", 7, "maxitr is given twice (first in line 7)"),
    ("znuc=7.0", "znuc=seven", 3, "znuc is 'seven'; it must be a number"),
    ("5.976d-2", "5.976x-2", 5, "must be a number"),
    ("nbs=23", "nbs=23.5", 5, "nbs is '23.5'; it must be a whole number"),
    ("freeel=3", "freeel=1e999", 6, "freeel is '1e999'; it must be a number"),
    ("maxitr=50", "maxitr=0", 7, "whole number from 1"),
    ("'energy'", "'energies'", 2, "it may be 'energy' or 'bsopt'"),
    ("'wtbs'", "'sto'", 4, "it may be 'wtbs' or 'rdin'"),
    ("'energy'", "'energy", 2, "a quote that is not closed"),
    (".true.", "maybe", 6, "it may be .true. or .false."),
    ("nucmdl=3", "nucmdl=4", 3, "whole number from 1 to 3"),
    ("znuc=7.0", "znuc=-7.0", 3, "must be a number between 0.001"),
    ("znuc=7.0", "znuc=1e30", 3, "znuc is '1e30'; it must be a number between 0.001 and 1000"),
    ("nucmdl=3", "nucmdl=3 alpha=1d-300", 3, "alpha is '1d-300'; it must be a number between 1e-06 and 1e+20"),
    ("'energy'", "'energy' c=1e300", 2, "c is '1e300'; it must be a number between 1 and 1e+12"),
    ("znuc=7.0", "znuc=7.5", 3, "no radius is known for the charge 7.5"),
    ("znuc=7.0 nucmdl=3", "znuc=138", 3, "a point charge binds no 1s"),
    ("$end\n$nuc znuc=7.0 nucmdl=3", "c=5 $end\n$nuc znuc=7.0", 3, "a point charge binds no 1s"),
    ("freeel=3", "freeel=7", 6, "freeel is 7; the open spinors hold 6"),
    ("freeel=3", "freeel=6", 6, "freeel is 6; the open spinors hold 6"),
    ("freeel=3", "freeel=0", 6, "freeel is 0; the open spinors hold 6"),
    ("freeel=3", "freeel=2.5", 6, "autogen needs a whole number"),
    ("nopen=0,1,1", "nopen=0,0,0", 6, "nopen has no open spinor"),
    ("nopen=0,1,1", "nopen=0,2,1", 6, "whole number from 0 to 1"),
    ("nclose=2,0,0", "nclose=24,0,0", 6, "nclose asks for 24 spinors of S+, which has 23 functions"),
    ("nclose=2,0,0", "nclose=7,0,0", 6, "make 17 electrons; a nucleus of 7 cannot bind them"),
    ("nclose=2,0,0 nopen=0,1,1 freeel=3", "nclose=0,0,0", 6, "leave no electron"),
    ("autogen=.true.", "nconf=0", 6, "nconf is 0: open spinors need autogen"),
    ("5.976d-2", "-5.976d-2", 5, "alpha = -0.05976 is not above 0"),
    ("1.923", "0.5", 5, "beta = 0.5 is not above 1"),
    ("1.442", "-3.", 5, "gamma = -3 is not above -1"),
    ("1.923", "1923", 5, "wtbspara gives no valid set of exponents: exponent "),
    (
        "5.976d-2",
        "1e-12",
        5,
        "wtbspara gives no valid set of exponents: exponent 1.0e-12 is not between 1e-10 and 1e+20",
    ),
    ("ixtrp=1", "dfctr=1.5", 7, "must be a number between 0 and 1"),
    ("thdll=1d-8", "thdll=0", 7, "must be a positive number"),
    ("$scf", "$scf oops", 7, "'oops' inside $scf: write key = value"),
    ("thdss=1d-12 $end", "thdss=1d-12 $end $more x=1 $end", 7, "'$more' after the last group"),
    ("nucmdl=3 $end", "nucmdl=3 $end trailing", 3, "'trailing' after the end of $nuc"),
    ("maxitr=50", "maxitr=3*", 7, "write a repeated value as 3*1"),
    ("maxitr=50", "maxitr=#", 7, "must be a whole number"),
]


WRONG_ELSEWHERE = [  # the same for other files: file, old text, new text, line number, message
    (CHROMIUM, "1 2 3 ", "1 2 4 ", 12, "add up to 7, not to freeel = 6"),
    (CHROMIUM, "1 2 3 ", "2 2 2 1 1", 12, "5 occupations; nopen has 3 open spinors"),
    (CHROMIUM, "1 2 3 ", "1 5 0 ", 12, "5 electrons in D-, which holds 0 to 4"),
    (CHROMIUM, "1 2 3 ", "1 2 x ", 12, "expected configuration 3 of 5, found 'x'"),
    (CHROMIUM, "1 0 5\n", "", 14, "expected configuration 5 of 5, found '&scf'"),
    (CHROMIUM, "1 2 3 ", "1 2 3 0.5", 12, "give a weight with every configuration or with none"),
    (CHROMIUM, "nconf=5", "nconf=-5", 9, "whole number from 0"),
    (LISTED, "\n4\n", "\n5\n", 11, "expected exponent 5 of 5 of S+, found '$ECONFIG'"),
    (LISTED, "\n4\n", "\nfour\n", 5, "expected the number of functions of S+"),
    (LISTED, "\n4\n", "\n4.5\n", 5, "whole number from 1"),
    (LISTED, " 1.2", "-1.2", 7, "exponent -1.2 of S+ is not between 1e-10 and 1e+20"),
    (LISTED, " 1.2", "1e30", 7, "exponent 1e+30 of S+ is not between 1e-10 and 1e+20"),
    (LISTED, " 1.2", "1e-12", 7, "exponent 1e-12 of S+ is not between 1e-10 and 1e+20"),
    (LISTED, " 1.2", "0.3", 7, "exponent 0.3 of S+ is given twice"),
    (LISTED, " 1.2", "1.2 1.3", 7, "found 2 numbers"),
    (LISTED, '"energy"', "'bsopt'", 4, "cannot optimise; use 'wtbs'"),
    (LISTED, 'JOBTYP="energy"', "jobtyp='energy' jobtype='energy'", 2, "are the same; give one"),
    (LISTED, "1.0D-4", "1D-300", 3, "rnuc is '1D-300'; it must be a number between 1e-10 and 1000"),
    (OPTIMISE, "rhobeg=0.2", "rhobeg=1e300", 6, "rhobeg is '1e300'; it must be a number between 1e-12 and 10"),
    (OPTIMISE, "rhobeg=0.2", "rhobeg=1e-5", 6, "smaller than rhobeg"),
    (OPTIMISE, "$newuoa rhobeg=0.2 maxfun=300 iprint=1 $end\n", "", 6, "expected the group $newuoa"),
]
