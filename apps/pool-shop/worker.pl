#!/usr/bin/perl
# A FastCGI worker in Perl, on the listening descriptor 0 (or one CGI request): whether another library is understood.
use strict;
use warnings;
use CGI::Fast;

while (my $request = CGI::Fast->new) {
    my $name = $request->param('name') // 'nobody';
    my $sent = $request->param('POSTDATA') // '';
    print $request->header('text/plain'), "process $$ greets $name at ", $request->path_info, ', ', length $sent, " bytes\n";
}
